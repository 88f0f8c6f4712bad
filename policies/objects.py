"""Kubernetes objects as the rules see them: plain mappings with a few names, whoever made them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from policies.templates import PODLESS, PodTemplate, part, templates, unknown_places
from policies.unknown import is_unknown, text


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
        """metadata.name, else the last part of the URN. Raises Undecided for an unknown one."""
        return self._named("name") or self.urn.rpartition("::")[2]

    @property
    def namespace(self) -> str:
        """metadata.namespace, empty for cluster-scoped objects. Raises Undecided for an unknown one."""
        return self._named("namespace")

    @property
    def space(self) -> str | None:
        """The namespace, or None for one that is unknown."""
        return None if is_unknown(self.metadata) or is_unknown(self.metadata.get("namespace")) else self.namespace

    @property
    def ref(self) -> str:
        """How messages call it: Kind namespace/name, as far as they are known."""
        known: Mapping[str, Any] = {} if is_unknown(self.metadata) else self.metadata
        name = _text(known.get("name")) or self.urn.rpartition("::")[2]
        namespace = _text(known.get("namespace"))
        return f"{self.kind} {namespace}/{name}" if namespace else f"{self.kind} {name}"

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """metadata, or nothing; this and its parts are unknown where they are so."""
        found: Any = self.body.get("metadata")
        return found if is_unknown(found) or isinstance(found, Mapping) else {}

    @property
    def labels(self) -> Mapping[str, Any]:
        """metadata.labels, or nothing."""
        return part(self.metadata, "labels")

    @property
    def annotations(self) -> Mapping[str, Any]:
        """metadata.annotations, or nothing."""
        return part(self.metadata, "annotations")

    @cached_property
    def pods(self) -> tuple[PodTemplate, ...]:
        """Every pod template in it, also those inside custom resources such as ModelServing."""
        return tuple(templates(self.body))

    @cached_property
    def unknown_pods(self) -> tuple[str, ...]:
        """Paths where a pod or a part of one is unknown until `up`."""
        kubernetes = bool(self.api_version) or self.type.startswith("kubernetes:")
        return tuple(unknown_places(self.body)) if kubernetes and self.kind not in PODLESS else ()

    def _named(self, field: str) -> str:
        found = self.metadata.get(field)
        return text(found) if is_unknown(found) else _text(found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
