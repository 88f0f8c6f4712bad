"""Pod templates inside any object, and the places where a preview can't see whether there is one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policies.unknown import is_unknown

_CONTAINER_FIELDS: Final = {"image", "command", "args", "resources"}
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_HOLDERS: Final = frozenset({"spec", "roles", *_LISTS})
"""Fields that lead to pods, beside those that are called a template."""
PODLESS: Final = frozenset(
    {
        *(
            "Namespace",
            "Node",
            "NodePatch",
            "ConfigMap",
            "Secret",
            "Service",
            "ServiceAccount",
            "Endpoints",
            "EndpointSlice",
        ),
        *(
            "PersistentVolume",
            "PersistentVolumeClaim",
            "StorageClass",
            "PriorityClass",
            "RuntimeClass",
            "Lease",
            "Event",
        ),
        *("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "NetworkPolicy", "PodDisruptionBudget"),
        *("HorizontalPodAutoscaler", "ScaledObject", "AutoscalingPolicy", "AutoscalingPolicyBinding", "APIService"),
        *("CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "NodePool"),
        *("Ingress", "Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "BackendTLSPolicy"),
        *("ModelServer", "ModelRoute", "ExternalSecret", "SecretStore", "SealedSecret", "Certificate"),
        *("PodMonitor", "ServiceMonitor", "PrometheusRule", "LimitRange", "ResourceQuota"),
    }
)
"""Kinds without pods: an unknown value in them hides none. Of any other kind, custom ones too, it may."""


@dataclass(frozen=True)
class PodTemplate:
    """A pod spec and what its pods are marked with, each unknown where it is so; `path` leads to the spec."""

    path: str
    spec: Mapping[str, Any]
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Path and body of each known container, init containers first and those of a debugging session last."""
        for kind in _LISTS:
            listed = self.spec.get(kind)
            for index, container in enumerate(() if is_unknown(listed) else listed or ()):
                if not is_unknown(container):
                    yield f"{self.path}.{kind}[{index}]", container


def templates(value: Any, path: str = "", metadata: Any = None) -> Iterator[PodTemplate]:
    """Every pod template below a value, also those inside custom resources such as ModelServing."""
    if isinstance(value, Mapping):
        if _is_pod_spec(value):
            yield PodTemplate(path, value, part(metadata, "labels"), part(metadata, "annotations"))
            return
        for key, item in value.items():
            if key != "status":
                yield from templates(item, f"{path}.{key}" if path else str(key), value.get("metadata"))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from templates(item, f"{path}[{index}]")


def unknown_places(value: Any, path: str = "", holder: str = "") -> Iterator[str]:
    """Paths of unknown values that may be pod templates, pod specs or containers."""
    if is_unknown(value):
        if holder in _HOLDERS or holder.endswith(("emplate", "emplates")):
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key != "status":
                yield from unknown_places(item, f"{path}.{key}" if path else str(key), str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from unknown_places(item, f"{path}[{index}]", holder)


def part(metadata: Any, field: str) -> Any:
    """A mapping of an object's metadata, or nothing; unknown where it or the metadata is so."""
    found = metadata if is_unknown(metadata) or not isinstance(metadata, Mapping) else metadata.get(field)
    return found if is_unknown(found) or isinstance(found, Mapping) else {}


def _is_pod_spec(value: Mapping[str, Any]) -> bool:
    """By its containers, also where they are unknown."""
    containers = value.get("containers")
    if is_unknown(containers):
        return True
    if not isinstance(containers, Sequence) or isinstance(containers, str) or not containers:
        return False
    return any(is_unknown(one) or _is_container(one) for one in containers[:1])


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping) and "name" in value and bool(_CONTAINER_FIELDS & set(value))
