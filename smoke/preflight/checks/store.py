"""Nodes for the pods that hold the store's memory: enough of it, and RDMA devices where the stack counts on them."""

from rules.quantity import to_bytes
from settings.settings import Settings
from settings.sharing import store_pod_count, store_protocols
from smoke.doctor.diagnosis import Finding
from smoke.preflight.checks.pools import pool_nodes
from smoke.preflight.inventory import Inventory, Object, allocatable, finding, labels_of


def store_pods_find_nodes(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Nodes hold all store pods beside the pods of others; the stack's own engines are judged by the settings."""
    pods = settings.kv_store.store_pods
    wanted = sum(store_pod_count(settings, protocol) for protocol in store_protocols(settings))
    if pods is None or not wanted or {"nodes", "pods"} & set(inventory.blind):
        return []
    pool = next((pool for pool in settings.node_pools if pool.name == pods.pool), None)
    if pool is not None and pool.mode == "karpenter":
        return []
    nodes = pool_nodes(pool, inventory) if pool else list(inventory.nodes)
    each = to_bytes(pods.memory_limit)
    room = sum(max(0, _memory(node) - _taken(node, inventory)) // each for node in nodes)
    if room >= wanted:
        return []
    where = f"pool/{pool.name}" if pool else "nodes"
    cause = f"have room for {room} of {wanted} store pods of {pods.memory_limit}"
    fix = "lower kvStore.storePods.replicas or segment, or add nodes; see: kubectl describe nodes"
    return [finding("storePods", "error", where, cause, fix)]


def rdma_devices_are_there(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Each node of a pool with `rdmaResource` offers it, else its engines and store pods stay Pending."""
    if "nodes" in inventory.blind:
        return []
    return [
        finding(
            "rdma",
            "error",
            f"node/{node['metadata']['name']}",
            f"offers no {pool.rdma_resource}",
            "install the RDMA device plugin, or correct nodePools.rdmaResource; see: kubectl describe node",
        )
        for pool in settings.node_pools
        if pool.rdma_resource and pool.mode != "karpenter"
        for node in pool_nodes(pool, inventory)
        if not allocatable(node, pool.rdma_resource)
    ]


def _memory(node: Object) -> int:
    return to_bytes(node.get("status", {}).get("allocatable", {}).get("memory", 0))


def _taken(node: Object, inventory: Inventory) -> int:
    """Memory that pods of others request on a node, in bytes."""
    return sum(
        to_bytes(container.get("resources", {}).get("requests", {}).get("memory", 0))
        for pod in inventory.pods
        if pod["spec"].get("nodeName") == node["metadata"]["name"]
        and labels_of(pod).get("app.kubernetes.io/part-of") != "moonstack"
        for container in pod["spec"].get("containers", ())
    )


CHECKS = (store_pods_find_nodes, rdma_devices_are_there)
