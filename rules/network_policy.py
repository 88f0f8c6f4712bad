"""NetworkPolicies of a stack, from its flow graph: one for each part, and one that closes everything else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rules import flow
from rules.flow import Flow

COMPONENT: Final = "app.kubernetes.io/component"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
DEFAULT_DENY: Final = "default-deny"
PRIVATE: Final = ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
"""Not the internet: RFC 1918, RFC 6598, loopback, and link-local, where clouds keep their metadata services."""
EVERYWHERE: Final = "0.0.0.0/0"
NODE_LOCAL_DNS: Final = "169.254.20.10/32"
"""Address of kubernetes/dns node-cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the ends of flows outside the namespace are; CIDRs, or a namespace's name."""

    clients: tuple[str, ...] = (EVERYWHERE,)
    api_server: tuple[str, ...] = ()
    """Empty: pods may ask any address for it, and from it only the capacity API is open (which authenticates it by TLS)."""
    dns: tuple[str, ...] = ()
    """Beside the pods labelled k8s-app=kube-dns in kube-system."""
    channel: tuple[str, ...] = ()
    """Addresses of the channel or of the proxy to it; empty: everywhere but private ranges, as a host name can't be matched."""
    weights: tuple[str, ...] = ()
    etcd: tuple[str, ...] = ()
    monitoring_namespace: str = "monitoring"
    kthena_namespace: str = "kthena-system"


def specs(flows: Sequence[Flow], places: Places) -> dict[str, dict[str, Any]]:
    """NetworkPolicy specs by object name. Every pod may ask DNS; a pod of no part may do nothing else."""
    known = [f for f in flows if f.source != flow.API_SERVER or f.target == flow.CAPACITY or places.api_server]
    policies = {part: _of_part(part, known, places) for part in flow.PARTS}
    return {DEFAULT_DENY: _closed(places)} | {policy_name(part): spec for part, spec in policies.items()}


def policy_name(part: str) -> str:
    """The policy of a part."""
    return f"allow-{part}"


def _closed(places: Places) -> dict[str, Any]:
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [_to_dns(places)]}


def _of_part(part: str, flows: Sequence[Flow], places: Places) -> dict[str, Any]:
    return {
        "podSelector": {"matchLabels": {COMPONENT: part}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [_rule("from", f.source, f, places) for f in flows if f.target == part],
        "egress": [_rule("to", f.target, f, places) for f in flows if f.source == part],
    }


def _rule(direction: str, other: str, one: Flow, places: Places) -> dict[str, Any]:
    opened = [{"protocol": "TCP", "port": port} for port in one.ports]
    return {direction: _peers(other, places), **({"ports": opened} if opened else {})}


def _peers(end: str, places: Places) -> list[dict[str, Any]]:
    """Clients from everywhere include pods of other namespaces, which an ipBlock doesn't mean in every plugin (Cilium)."""
    if end in flow.PARTS:
        return [{"podSelector": {"matchLabels": {COMPONENT: end}}}]
    namespaces: Mapping[str, str] = {
        flow.PROMETHEUS: places.monitoring_namespace,
        flow.KTHENA_ROUTER: places.kthena_namespace,
    }
    if end in namespaces:
        return [{"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: namespaces[end]}}}]
    addresses: Mapping[str, Sequence[str]] = {
        flow.CLIENTS: places.clients,
        flow.API_SERVER: places.api_server or (EVERYWHERE,),
        flow.CHANNEL: places.channel,
        flow.WEIGHTS: places.weights,
        flow.ETCD: places.etcd,
    }
    if end == flow.CLIENTS and EVERYWHERE in places.clients:
        return [{"namespaceSelector": {}}, {"ipBlock": {"cidr": EVERYWHERE}}]
    return [{"ipBlock": {"cidr": cidr}} for cidr in addresses[end]] or [_internet()]


def _internet() -> dict[str, Any]:
    return {"ipBlock": {"cidr": EVERYWHERE, "except": list(PRIVATE)}}


def _to_dns(places: Places) -> dict[str, Any]:
    pods = {
        "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    addresses = [{"ipBlock": {"cidr": cidr}} for cidr in (NODE_LOCAL_DNS, *places.dns)]
    return {"to": [pods, *addresses], "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}
