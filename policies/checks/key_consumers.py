"""Only the declared consumer of a Secret can read it: through mounts, references and rights."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.checks.secret_readers import declares_secret, secret_name, secrets_of
from policies.objects import Object
from policies.rule import UNDECIDED, Facts, Finding, Rule, guarded
from policies.unknown import known, text
from rules import labels

APP: Final = "app.kubernetes.io/name"
_READ: Final = frozenset({"get", "list", "watch", "*"})
_DOORS: Final = frozenset({"pods/exec", "pods/attach", "pods/ephemeralcontainers", "serviceaccounts/token"})
Holder = tuple[str, str]
"""A namespace, and who has a right there: a service account's name, or `User x` and `Group x`."""


def only_the_consumer_mounts(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A Secret that names its consumer is mounted or referred to by pods of that name alone."""
    consumers: dict[tuple[str, str], str] = {}
    yield from _collect(objects, consumers)
    for one in objects:
        yield from guarded(_foreign_uses(one, consumers), one)


def only_the_consumer_may_read(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A Role that reads Secrets names each of them, and is bound to their consumer's account.

    Who may enter a pod, or take an account's token, reads whatever they read: nobody of ours needs it.
    """
    consumers: dict[tuple[str, str], str] = {}
    yield from _collect(objects, consumers)
    holders: dict[tuple[str, str, str], list[Holder]] = {}
    for one in objects:
        if one.kind in ("RoleBinding", "ClusterRoleBinding"):
            yield from guarded(_bind(one, holders), one)
    for one in objects:
        if one.kind in ("Role", "ClusterRole"):
            yield from guarded(_rights(one, consumers, holders), one)


def no_default_token(one: Object, facts: Facts) -> Iterator[Finding]:
    """The token of the default service account is not mounted: nothing of ours needs it, and an intruder could use it."""
    for pod in one.pods:
        account = text(pod.spec.get("serviceAccountName")) or "default"
        if account != "default":
            continue
        if known(pod.spec.get("automountServiceAccountToken")) is not False:
            place = f"{pod.path}.automountServiceAccountToken"
            yield Finding(one, place, "set it to false, or name a service account of its own")
        volumes: Sequence[Mapping[str, Any]] = pod.spec.get("volumes") or ()
        for index, volume in enumerate(volumes):
            sources: Sequence[Mapping[str, Any]] = (volume.get("projected") or {}).get("sources") or ()
            if any("serviceAccountToken" in source for source in sources):
                yield Finding(one, f"{pod.path}.volumes[{index}]", "projects the default account's token; name its own")


def _collect(objects: Sequence[Object], consumers: dict[tuple[str, str], str]) -> Iterator[Finding]:
    for one in objects:
        if declares_secret(one):
            yield from guarded(_consumer(one, consumers), one)


def _consumer(one: Object, consumers: dict[tuple[str, str], str]) -> Iterator[Finding]:
    if labels.CONSUMER in one.labels:
        consumers[one.namespace, secret_name(one)] = text(one.labels[labels.CONSUMER])
    yield from ()


def _foreign_uses(one: Object, consumers: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    for pod in one.pods:
        for path, secret in secrets_of(pod):
            if not secret:
                yield Finding(one, path, UNDECIDED, undecided=True)
                continue
            consumer = consumers.get((one.namespace, secret))
            if consumer is not None and (app := text(pod.labels.get(APP))) != consumer:
                yield Finding(one, path, f"Secret {secret} is for {consumer} alone; remove it from {app or 'this pod'}")


def _rights(
    role: Object,
    consumers: Mapping[tuple[str, str], str],
    holders: Mapping[tuple[str, str, str], Sequence[Holder]],
) -> Iterator[Finding]:
    for index, rule in enumerate(role.body.get("rules") or ()):
        resources, verbs = _words(rule, "resources"), _words(rule, "verbs")
        if (door := resources & _DOORS) and verbs & {"create", "get", "update", "patch", "*"}:
            yield Finding(role, f"rules[{index}].resources", f"{min(door)} lets its holder read all that a pod reads")
        if not resources & {"secrets", "*"} or not verbs & _READ:
            continue
        named: Sequence[Any] = rule.get("resourceNames") or ()
        if not named:
            yield Finding(role, f"rules[{index}].resourceNames", "reads every Secret; name those that are needed")
        for namespace, holder in holders.get((role.kind, role.namespace, role.name), ()):
            for (where, secret), consumer in consumers.items():
                if secret in map(text, named) and namespace in ("", where) and holder != consumer:
                    yield Finding(
                        role, f"rules[{index}]", f"lets {holder} read Secret {secret}, which is for {consumer} alone"
                    )


def _words(rule: Mapping[str, Any], field: str) -> set[str]:
    values: Sequence[Any] = rule.get(field) or ()
    return {text(value) for value in values}


def _bind(binding: Object, holders: dict[tuple[str, str, str], list[Holder]]) -> Iterator[Finding]:
    """A role's holders, each with the namespace where it has the rights; empty for all."""
    role = binding.body["roleRef"]
    kind = text(role.get("kind")) or "Role"
    held = holders.setdefault((kind, "" if kind == "ClusterRole" else binding.namespace, text(role["name"])), [])
    for subject in binding.body.get("subjects") or ():
        own = text(subject.get("kind")) == "ServiceAccount"
        held.append((binding.namespace, text(subject.get("name")) if own else f"{subject['kind']} {subject['name']}"))
    yield from ()


RULES: Final = (
    Rule(
        id="secret-consumer",
        concern="key-hygiene",
        severity="critical",
        description="A Secret is mounted by its declared consumer alone.",
        all=only_the_consumer_mounts,
        reads_pods=True,
    ),
    Rule(
        id="secret-rights",
        concern="key-hygiene",
        severity="critical",
        description="Roles that read Secrets name them, and are bound to their consumer alone; none enters pods or takes accounts' tokens.",
        all=only_the_consumer_may_read,
    ),
    Rule(
        id="no-default-token",
        concern="key-hygiene",
        severity="medium",
        description="No pod mounts the token of the default service account.",
        each=no_default_token,
        reads_pods=True,
    ),
)
