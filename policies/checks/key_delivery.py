"""Keys reach containers only by reference, or as files of a Secret mounted as a whole directory."""

from collections.abc import Iterator
from typing import Any, Final

from policies.objects import Object, PodTemplate
from policies.rule import Facts, Finding, Rule
from policies.unknown import is_unknown
from rules.key_names import names_a_key


def by_reference(one: Object, facts: Facts) -> Iterator[Finding]:
    """An env variable named like a key takes its value from a Secret, never from a literal or a ConfigMap."""
    for pod in one.pods:
        for path, container in pod.containers():
            for index, variable in enumerate(container.get("env") or ()):
                yield from _variable(one, f"{path}.env[{index}]", variable)


def _variable(one: Object, path: str, variable: Any) -> Iterator[Finding]:
    name = variable.get("name")
    if is_unknown(name):
        yield Finding(one, f"{path}.name", "unknown until up", undecided=True)
    elif names_a_key(name or ""):
        value = variable.get("value")
        if is_unknown(value):
            yield Finding(one, f"{path}.value", f"{name} gets a value that is unknown until up", undecided=True)
        elif value:
            yield Finding(one, f"{path}.value", f"{name} is a literal; use valueFrom.secretKeyRef")
        elif "configMapKeyRef" in (variable.get("valueFrom") or {}):
            yield Finding(one, f"{path}.valueFrom", f"{name} comes from a ConfigMap; use secretKeyRef")


def whole_directories(one: Object, facts: Facts) -> Iterator[Finding]:
    """A Secret is mounted without subPath: the kubelet never updates a subPath mount, so a rotation would not arrive."""
    for pod in one.pods:
        volumes = secret_volumes(pod)
        for path, container in pod.containers():
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") in volumes and (mount.get("subPath") or mount.get("subPathExpr")):
                    place = f"{path}.volumeMounts[{index}].subPath"
                    yield Finding(one, place, "a Secret mounted by subPath never sees a rotation; mount the directory")


def secret_volumes(pod: PodTemplate) -> dict[str, tuple[str, ...]]:
    """Volume name → names of the Secrets it brings, also through a projected volume."""
    found: dict[str, tuple[str, ...]] = {}
    for volume in pod.spec.get("volumes") or ():
        secrets = [volume["secret"].get("secretName")] if volume.get("secret") else []
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("secret"):
                secrets.append(source["secret"].get("name"))
        if secrets:
            found[volume["name"]] = tuple(str(name) if not is_unknown(name) else "" for name in secrets)
    return found


RULES: Final = (
    Rule(
        id="key-by-reference",
        concern="key-hygiene",
        severity="critical",
        description="An environment variable named like a key takes its value from a Secret (secretKeyRef).",
        each=by_reference,
    ),
    Rule(
        id="secret-as-directory",
        concern="key-hygiene",
        severity="high",
        description="Secrets are mounted as whole directories, without subPath.",
        each=whole_directories,
    ),
)
