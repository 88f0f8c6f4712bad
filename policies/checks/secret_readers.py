"""Which Secrets are declared, by whatever brings them, and which of them a pod gets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.objects import Object
from policies.templates import PodTemplate
from policies.unknown import is_unknown, text

_MAKERS: Final = ("ExternalSecret", "SealedSecret")
_REFERENCES: Final = frozenset({"secretRef", "nodePublishSecretRef", "secretName"})
"""How volumes beside `secret` name one: csi, cephfs, rbd, iscsi, flexVolume, scaleIO, storageos, azureFile."""
_HOLDERS: Final = _REFERENCES | {"secret", "projected", "sources", "csi"}
"""Fields of a volume whose value names Secrets, if it is known."""


def declares_secret(one: Object) -> bool:
    """Whether it is a Secret, or what an operator makes one of with the same labels."""
    return (one.kind == "Secret" and one.group == "") or one.kind in _MAKERS


def secret_name(one: Object) -> str:
    """The name of the Secret that such an object is or becomes. Raises Undecided for an unknown one."""
    spec = one.body.get("spec") if one.kind == "ExternalSecret" else None
    target = (spec or {}).get("target") or {}
    return text(target.get("name")) or one.name


def secret_volumes(pod: PodTemplate) -> dict[str, tuple[str, ...]]:
    """Volume name → names of the Secrets it brings, also through a projected volume or a driver's; an unknown one is empty."""
    found: dict[str, tuple[str, ...]] = {}
    for volume in pod.spec.get("volumes") or ():
        if secrets := tuple(_named(volume)):
            found[volume["name"]] = secrets
    return found


def secrets_of(pod: PodTemplate) -> Iterator[tuple[str, str]]:
    """Path and name of every Secret that a pod gets, by volume, env or envFrom; the name of one that is unknown is empty."""
    for volume, secrets in secret_volumes(pod).items():
        yield from ((f"{pod.path}.volumes[{volume}]", secret) for secret in secrets)
    for path, container in pod.containers():
        for index, variable in enumerate(container.get("env") or ()):
            if reference := (variable.get("valueFrom") or {}).get("secretKeyRef"):
                yield f"{path}.env[{index}]", text(reference.get("name"))
        for index, source in enumerate(container.get("envFrom") or ()):
            if reference := source.get("secretRef"):
                yield f"{path}.envFrom[{index}]", text(reference.get("name"))


def _named(value: Any, kind: str = "") -> Iterator[str]:
    """Names of Secrets below a volume; an unknown one is empty."""
    if is_unknown(value):
        if kind in ("", *_HOLDERS):
            yield ""
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key in _REFERENCES or (kind == "secret" and key == "name"):
                name = item.get("name") if isinstance(item, Mapping) else item
                yield "" if is_unknown(name) or name is None else str(name)
            else:
                yield from _named(item, str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _named(item, kind)
