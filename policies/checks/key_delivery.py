"""Keys reach containers only by reference, or as files of a Secret mounted as a whole directory."""

import re
from collections.abc import Iterator
from typing import Any, Final

from policies.checks.secret_readers import secret_volumes
from policies.objects import Object
from policies.rule import Facts, Finding, Rule, guarded
from policies.unknown import is_unknown
from rules import key_text
from rules.key_names import names_a_key

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_SWITCH: Final = re.compile(r"(?i:true|false|yes|no|on|off|none)")


def by_reference(one: Object, facts: Facts) -> Iterator[Finding]:
    """An env variable named like a key takes its value from a Secret, never from a literal, a ConfigMap or a field."""
    for pod in one.pods:
        for path, container in pod.containers():
            for index, variable in enumerate(container.get("env") or ()):
                yield from guarded(_variable(one, f"{path}.env[{index}]", variable), one)


def _variable(one: Object, path: str, variable: Any) -> Iterator[Finding]:
    name = variable.get("name")
    if is_unknown(name):
        yield Finding(one, f"{path}.name", "unknown until up", undecided=True)
    elif names_a_key(name or ""):
        value = variable.get("value")
        if is_unknown(value):
            yield Finding(one, f"{path}.value", f"{name} gets a value that is unknown until up", undecided=True)
        elif value and not _is_no_key(name, str(value)):
            yield Finding(one, f"{path}.value", f"{name} is a literal; use valueFrom.secretKeyRef")
        origins = {*(variable.get("valueFrom") or {})} - {"secretKeyRef"}
        if origins:
            yield Finding(one, f"{path}.valueFrom", f"{name} comes from {min(origins)}; use secretKeyRef")


def _is_no_key(name: str, value: str) -> bool:
    """A switch, a count, a path, or what comes from other variables; a number may be a password."""
    if _NUMBER.fullmatch(value):
        return "PASS" not in name.upper()
    return bool(_SWITCH.fullmatch(value)) or value.startswith(("/", "./")) or key_text.is_reference(value)


def whole_directories(one: Object, facts: Facts) -> Iterator[Finding]:
    """A Secret is mounted without subPath: the kubelet never updates a subPath mount, so a rotation would not arrive."""
    for pod in one.pods:
        volumes = secret_volumes(pod)
        for path, container in pod.containers():
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") in volumes and (mount.get("subPath") or mount.get("subPathExpr")):
                    place = f"{path}.volumeMounts[{index}].subPath"
                    yield Finding(one, place, "a Secret mounted by subPath never sees a rotation; mount the directory")


RULES: Final = (
    Rule(
        id="key-by-reference",
        concern="key-hygiene",
        severity="critical",
        description="An environment variable named like a key takes its value from a Secret (secretKeyRef).",
        each=by_reference,
        reads_pods=True,
    ),
    Rule(
        id="secret-as-directory",
        concern="key-hygiene",
        severity="high",
        description="Secrets are mounted as whole directories, without subPath.",
        each=whole_directories,
        reads_pods=True,
    ),
)
