"""Manifests of a shape that no API server takes: rules would read nothing in them, and pass them in silence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule

WORKLOADS: Final = frozenset(
    {"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"}
)
"""Kinds that are nothing without a pod: their containers must be found."""
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_TEXTS: Final = ("command", "args")
_LISTS: Final = ("env", "envFrom", "ports", "volumeMounts", "volumeDevices")
_MAPPINGS: Final = ("resources", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")

Problem = tuple[str, str]
"""Path and what must stand there."""


def shaped(one: Object, facts: Facts) -> Iterator[Finding]:
    """Kind, metadata, pod specs and containers have the types of the API. Objects of a state were checked by its provider."""
    if not one.type:
        for path, must in (*_head(one.body), *_items(one.body), *_pods(one.body)):
            yield Finding(one, path, f"can't be judged: must be {must}; compare with the API")


def _head(body: Mapping[str, Any]) -> Iterator[Problem]:
    for field in ("kind", "apiVersion"):
        if not _is_text(body.get(field)):
            yield field, "a text"
    if "metadata" not in body and "spec" not in body:
        return  # a List, or a file for a client: a kustomization, a kubeconfig
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        yield "metadata", "a mapping with a name"
        return
    if "items" not in body and not _is_text(metadata.get("name")) and not _is_text(metadata.get("generateName")):
        yield "metadata.name", "a text"
    if not isinstance(metadata.get("namespace", ""), str):
        yield "metadata.namespace", "a text"
    yield from _typed(metadata, "metadata", ("labels", "annotations"), Mapping, "a mapping")


def _items(body: Mapping[str, Any]) -> Iterator[Problem]:
    if str(body.get("kind")).endswith("List") and not isinstance(body.get("items", []), list):
        yield "items", "a list"


def _pods(body: Mapping[str, Any]) -> Iterator[Problem]:
    kind = body.get("kind")
    if kind == "CustomResourceDefinition":
        return
    specs = list(_specs(body, "", kind == "Pod"))
    if kind in WORKLOADS and not any(isinstance(spec, Mapping) and spec.get("containers") for _, spec in specs):
        yield "spec", "a pod's, or hold the template of one, with containers"
    for path, spec in specs:
        if isinstance(spec, Mapping):
            yield from _pod(path, spec)


def _specs(value: Any, path: str, is_pod: bool) -> Iterator[tuple[str, Any]]:
    """Path and value of each `spec` that stands where a pod's does: in a Pod, and in what is called a template."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            below = f"{path}.{key}" if path else str(key)
            if is_pod and key == "spec":
                yield below, item
            if key != "status":
                yield from _specs(item, below, str(key).endswith("emplate"))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _specs(item, f"{path}[{index}]", False)


def _pod(path: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _typed(spec, path, ("volumes", "tolerations", "imagePullSecrets"), list, "a list")
    yield from _typed(spec, path, ("securityContext", "nodeSelector", "affinity"), Mapping, "a mapping")
    for field in _CONTAINERS:
        found = spec.get(field)
        if found is None:
            continue
        if not isinstance(found, list):
            yield f"{path}.{field}", "a list"
            continue
        for index, container in enumerate(found):
            yield from _container(f"{path}.{field}[{index}]", container)


def _container(path: str, container: Any) -> Iterator[Problem]:
    if not isinstance(container, Mapping) or not _is_text(container.get("name")):
        yield path, "a mapping with a name"
        return
    if not isinstance(container.get("image", ""), str):
        yield f"{path}.image", "a text"
    yield from _typed(container, path, (*_LISTS, *_TEXTS), list, "a list")
    yield from _typed(container, path, _MAPPINGS, Mapping, "a mapping")
    for field in _TEXTS:
        yield from _each(container, path, field, lambda item: isinstance(item, str), "a text")
    for field in _LISTS:
        yield from _each(container, path, field, lambda item: isinstance(item, Mapping), "a mapping")
    yield from _each(container, path, "env", _is_variable, "a mapping with a name, whose value is a text")


def _is_variable(entry: Any) -> bool:
    return not isinstance(entry, Mapping) or (
        _is_text(entry.get("name"))
        and isinstance(entry.get("value") or "", str)
        and isinstance(entry.get("valueFrom") or {}, Mapping)
    )


def _typed(value: Mapping[str, Any], path: str, fields: Iterable[str], kind: type, must: str) -> Iterator[Problem]:
    """Fields that are there and of another type; null counts as absent, as the API server takes it."""
    yield from ((f"{path}.{field}", must) for field in fields if not isinstance(value.get(field), kind | None))


def _each(value: Mapping[str, Any], path: str, field: str, good: Any, must: str) -> Iterator[Problem]:
    items = value.get(field)
    if isinstance(items, Sequence) and not isinstance(items, str):
        yield from ((f"{path}.{field}[{index}]", must) for index, item in enumerate(items) if not good(item))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


SHAPE_RULE: Final = Rule(
    id="manifest-shape",
    concern="serving",
    severity="high",
    description="A manifest's kind, metadata, pods and containers have the types of the Kubernetes API.",
    each=shaped,
)
