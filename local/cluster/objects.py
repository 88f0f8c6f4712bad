"""The objects that the cluster itself needs: who may do what, and the Service that stands for DNS."""

from typing import Any

from local.cluster import pki
from local.cluster.layout import DNS_SERVICE, Layout

_READ = ["get", "list", "watch"]


def bootstrap(layout: Layout) -> list[dict[str, Any]]:
    """Everything to apply once the API server is ready, in order."""
    return [
        _binding("moonstack:cluster-admins", "cluster-admin", "Group", pki.ADMINISTRATORS),
        _binding("moonstack:kubelet-api", "system:kubelet-api-admin", "User", pki.KUBELET_CLIENT),
        _role(
            "moonstack:coredns",
            _rule([""], ["endpoints", "services", "pods", "namespaces"], _READ),
            _rule(["discovery.k8s.io"], ["endpointslices"], _READ),
        ),
        _binding("moonstack:coredns", "moonstack:coredns", "User", "moonstack:coredns"),
        *_dns(layout),
    ]


def kube_router() -> list[dict[str, Any]]:
    """What kube-router reads to enforce NetworkPolicies."""
    return [
        _role(
            "moonstack:kube-router",
            _rule([""], ["namespaces", "pods", "services", "nodes", "endpoints"], _READ),
            _rule(["networking.k8s.io"], ["networkpolicies"], _READ),
            _rule(["discovery.k8s.io"], ["endpointslices"], _READ),
        ),
        _binding("moonstack:kube-router", "moonstack:kube-router", "User", "moonstack:kube-router"),
    ]


def kwok() -> list[dict[str, Any]]:
    """What KWOK reads and writes to play nodes and their pods."""
    return [
        _role(
            "moonstack:kwok",
            _rule([""], ["nodes", "pods"], [*_READ, "patch", "update", "delete"]),
            _rule([""], ["nodes/status", "pods/status"], ["patch", "update"]),
            _rule([""], ["events"], ["create", "patch", "update"]),
            _rule(["events.k8s.io"], ["events"], ["create", "patch", "update"]),
            _rule(["coordination.k8s.io"], ["leases"], [*_READ, "create", "patch", "update", "delete"]),
        ),
        _binding("moonstack:kwok", "moonstack:kwok", "User", "moonstack:kwok"),
    ]


def _dns(layout: Layout) -> list[dict[str, Any]]:
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"clusterIP": DNS_SERVICE, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-local",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [layout.node], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [service, endpoints]


def _role(name: str, *rules: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> dict[str, list[str]]:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _binding(name: str, role: str, kind: str, subject: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": kind, "name": subject}],
    }
