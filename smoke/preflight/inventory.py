"""What the cluster has, gathered once and judged by pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smoke.doctor.diagnosis import Finding, Severity

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The cluster at one time; `blind` names what could not be read, so that nothing is taken for absent that wasn't seen."""

    version: str
    """Git version of the API server, such as v1.33.4."""
    kinds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """API group and version → the kinds that it serves; a group that isn't served is absent."""
    denied: tuple[str, ...] = ()
    """What the caller may not do, as `verb resource.group`."""
    namespace: Object | None = None
    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    """Pods of all namespaces that aren't finished."""
    claims: tuple[Object, ...] = ()
    secrets: frozenset[str] = frozenset()
    """Names of the Secrets in the namespace; values are never read."""
    quotas: tuple[Object, ...] = ()
    services: frozenset[str] = frozenset()
    """`namespace/name` of the Services that were looked up and exist."""
    api_services: tuple[Object, ...] = ()
    model_routes: tuple[Object, ...] = ()
    hyper_nodes: tuple[Object, ...] = ()
    """Volcano's tree of the network."""
    counts_roles: bool | None = None
    """Whether Volcano's PodGroups have a minimum a role; None: nobody could look."""
    webhooks_down: tuple[str, ...] = ()
    """Admission webhooks of Kthena without a ready endpoint."""
    network_agents: frozenset[str] = frozenset()
    """Names of DaemonSets in system namespaces."""
    blind: tuple[str, ...] = ()

    def serves(self, group_version: str, kind: str) -> bool:
        """Whether the API server serves a kind."""
        return kind in self.kinds.get(group_version, frozenset())


def finding(id: str, severity: Severity, object: str, cause: str, fix: str) -> Finding:
    """One line for the user."""
    return Finding(id=id, severity=severity, object=object, cause=cause, fix=fix)


def allocatable(node: Object, resource: str) -> int:
    """How many pieces of an extended resource a node offers."""
    return int(node.get("status", {}).get("allocatable", {}).get(resource, 0))


def requested(pod: Object, resource: str) -> int:
    """How many pieces of an extended resource a pod asks for."""
    containers = pod["spec"].get("containers", ())
    return sum(int(each.get("resources", {}).get("requests", {}).get(resource, 0)) for each in containers)


def labels_of(thing: Object) -> Mapping[str, str]:
    """An object's labels."""
    return thing["metadata"].get("labels") or {}
