"""Only the declared consumer of a Secret can read it: through mounts, references and rights."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.checks.key_delivery import secret_volumes
from policies.objects import Object, PodTemplate
from policies.rule import Facts, Finding, Rule, guarded
from policies.unknown import text
from rules import labels

APP: Final = "app.kubernetes.io/name"
_READ: Final = frozenset({"get", "list", "watch", "*"})


def only_the_consumer_mounts(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A Secret that names its consumer is mounted or referred to by pods of that name alone."""
    consumers = _consumers(objects)
    for one in objects:
        yield from guarded(_foreign_uses(one, consumers), one)


def only_the_consumer_may_read(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A Role that reads Secrets names each of them, and is bound to their consumer's account."""
    consumers = _consumers(objects)
    accounts = {(binding.namespace, role): subjects for binding in objects for role, subjects in _bindings(binding)}
    for one in objects:
        if one.kind in ("Role", "ClusterRole"):
            yield from guarded(_rights(one, consumers, accounts), one)


def no_default_token(one: Object, facts: Facts) -> Iterator[Finding]:
    """The token of the default service account is not mounted: nothing of ours needs it, and an intruder could use it."""
    for pod in one.pods:
        account = text(pod.spec.get("serviceAccountName")) or "default"
        if account == "default" and pod.spec.get("automountServiceAccountToken") is not False:
            place = f"{pod.path}.automountServiceAccountToken"
            yield Finding(one, place, "set it to false, or name a service account of its own")


def secrets_of(pod: PodTemplate) -> Iterator[tuple[str, str]]:
    """Path and name of every Secret that a pod gets, by volume, env or envFrom."""
    for volume, secrets in secret_volumes(pod).items():
        yield from ((f"{pod.path}.volumes[{volume}]", secret) for secret in secrets)
    for path, container in pod.containers():
        for index, variable in enumerate(container.get("env") or ()):
            if reference := (variable.get("valueFrom") or {}).get("secretKeyRef"):
                yield f"{path}.env[{index}]", text(reference.get("name"))
        for index, source in enumerate(container.get("envFrom") or ()):
            if reference := source.get("secretRef"):
                yield f"{path}.envFrom[{index}]", text(reference.get("name"))


def _consumers(objects: Sequence[Object]) -> dict[tuple[str, str], str]:
    declared = [one for one in objects if one.kind == "Secret" and labels.CONSUMER in one.labels]
    return {(one.namespace, one.name): text(one.labels[labels.CONSUMER]) for one in declared}


def _foreign_uses(one: Object, consumers: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    for pod in one.pods:
        app = text(pod.labels.get(APP))
        for path, secret in secrets_of(pod):
            consumer = consumers.get((one.namespace, secret))
            if consumer is not None and app != consumer:
                yield Finding(one, path, f"Secret {secret} is for {consumer} alone; remove it from {app or 'this pod'}")


def _rights(
    role: Object, consumers: Mapping[tuple[str, str], str], accounts: Mapping[tuple[str, str], list[str]]
) -> Iterator[Finding]:
    for index, rule in enumerate(role.body.get("rules") or ()):
        if not {"secrets", "*"} & set(rule.get("resources") or ()) or not _READ & set(rule.get("verbs") or ()):
            continue
        named: Sequence[Any] = rule.get("resourceNames") or ()
        if not named:
            yield Finding(role, f"rules[{index}].resourceNames", "reads every Secret; name those that are needed")
        for account in accounts.get((role.namespace, role.name), []):
            for secret in named:
                consumer = consumers.get((role.namespace, text(secret)))
                if consumer is not None and account != consumer:
                    yield Finding(
                        role, f"rules[{index}]", f"lets {account} read Secret {secret}, which is for {consumer} alone"
                    )


def _bindings(binding: Object) -> Iterator[tuple[str, list[str]]]:
    if binding.kind in ("RoleBinding", "ClusterRoleBinding"):
        subjects: Sequence[Mapping[str, Any]] = binding.body.get("subjects") or ()
        yield (
            text(binding.body["roleRef"]["name"]),
            [text(s.get("name")) for s in subjects if s.get("kind") == "ServiceAccount"],
        )


RULES: Final = (
    Rule(
        id="secret-consumer",
        concern="key-hygiene",
        severity="critical",
        description="A Secret is mounted by its declared consumer alone.",
        all=only_the_consumer_mounts,
    ),
    Rule(
        id="secret-rights",
        concern="key-hygiene",
        severity="critical",
        description="Roles that read Secrets name them, and are bound to their consumer alone.",
        all=only_the_consumer_may_read,
    ),
    Rule(
        id="no-default-token",
        concern="key-hygiene",
        severity="medium",
        description="No pod mounts the token of the default service account.",
        each=no_default_token,
    ),
)
