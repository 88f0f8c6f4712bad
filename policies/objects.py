"""Kubernetes objects as the rules see them: plain mappings with a few names, whoever made them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from policies.unknown import is_unknown

_CONTAINER_FIELDS: Final = {"image", "command", "args", "resources"}


@dataclass(frozen=True)
class Object:
    """One object. `urn`, `type` and `ignored` are known where it comes from Pulumi; other resources have no apiVersion."""

    body: Mapping[str, Any]
    urn: str = ""
    type: str = ""
    ignored: tuple[str, ...] = ()
    """Pulumi's `ignoreChanges` of the resource."""
    source: str = ""
    """Where it was read: a file, or a part of the state."""

    @property
    def kind(self) -> str:
        """The Kubernetes kind, or Pulumi's type token of any other resource."""
        return _text(self.body.get("kind")) or self.type or "?"

    @property
    def api_version(self) -> str:
        """apiVersion, empty for what is no Kubernetes object."""
        return _text(self.body.get("apiVersion"))

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def name(self) -> str:
        """metadata.name, else the last part of the URN."""
        return _text(self.metadata.get("name")) or self.urn.rpartition("::")[2]

    @property
    def namespace(self) -> str:
        """metadata.namespace, empty for cluster-scoped objects."""
        return _text(self.metadata.get("namespace"))

    @property
    def ref(self) -> str:
        """How messages call it: Kind namespace/name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """metadata, or nothing."""
        return _mapping(self.body.get("metadata"))

    @property
    def labels(self) -> Mapping[str, Any]:
        """metadata.labels, or nothing."""
        return _mapping(self.metadata.get("labels"))

    @property
    def annotations(self) -> Mapping[str, Any]:
        """metadata.annotations, or nothing."""
        return _mapping(self.metadata.get("annotations"))

    @cached_property
    def pods(self) -> tuple["PodTemplate", ...]:
        """Every pod template in it, also those inside custom resources such as ModelServing."""
        return tuple(_pods(self.body, "", {}))


@dataclass(frozen=True)
class PodTemplate:
    """A pod spec and the labels of its pods; `path` leads to the spec."""

    path: str
    spec: Mapping[str, Any]
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Path and body of each container, init containers first and those of a debugging session last."""
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            for index, container in enumerate(self.spec.get(kind) or ()):
                yield f"{self.path}.{kind}[{index}]", container


def _pods(value: Any, path: str, metadata: Mapping[str, Any]) -> Iterator[PodTemplate]:
    if isinstance(value, Mapping):
        if _is_pod_spec(value):
            yield PodTemplate(path, value, _mapping(metadata.get("labels")), _mapping(metadata.get("annotations")))
            return
        own = _mapping(value.get("metadata")) if not is_unknown(value.get("metadata")) else {}
        for key, item in value.items():
            if key != "status":
                yield from _pods(item, f"{path}.{key}" if path else str(key), own)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from _pods(item, f"{path}[{index}]", {})


def _is_pod_spec(value: Mapping[str, Any]) -> bool:
    containers = value.get("containers")
    if not isinstance(containers, Sequence) or isinstance(containers, str) or not containers:
        return False
    first = containers[0]
    return isinstance(first, Mapping) and "name" in first and bool(_CONTAINER_FIELDS & set(first))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
