"""Port numbers: one list, so that no two parts claim the same one."""

from typing import Final

ENGINE: Final = 8000
"""Kthena 0.4 scrapes engines here and nowhere else (volcano-sh/kthena#1185)."""
ROUTER: Final = 8000
ROUTER_METRICS: Final = 29000
GATEWAY_HTTP: Final = 9090
GATEWAY_GRPC: Final = 50051
GATEWAY_METRICS: Final = 9102
GATEWAY_HEALTH: Final = 9103
KV_MASTER_RPC: Final = 50061
KV_MASTER_METRICS: Final = 9003
KV_STORE_RPC: Final = 50062
KV_STORE_METRICS: Final = KV_MASTER_METRICS
"""Of store pods: the same as the master's, so that one flow and one PodMonitor hold for both."""
CAPACITY_API: Final = 6443
CAPACITY_METRICS: Final = 9104
KTHENA_ROUTER: Final = 8080
LOCAL_NODE_PORT: Final = 30443
"""NodePort that the local cluster's load balancer forwards to."""
NODE_PORT_RANGE: Final = range(30000, 32768)


def distinct(ports: dict[str, int]) -> list[str]:
    """The names of ports that collide with an earlier one."""
    seen: dict[int, str] = {}
    return [name for name, port in ports.items() if seen.setdefault(port, name) != name]
