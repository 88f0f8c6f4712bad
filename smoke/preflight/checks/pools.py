"""Node pools: enough nodes, with the labels that the device plugin sets, the chips, the architecture and no taint too many."""

from rules import labels
from rules.chips import CHIPS, DriverStack
from settings.node_pools import NodePoolSettings
from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from smoke.preflight.inventory import Inventory, Object, allocatable, finding, labels_of, requested


def pools_have_their_nodes(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Each pool that the stack doesn't make itself is there, as its settings say."""
    if "nodes" in inventory.blind:
        return []
    return [
        found
        for pool in settings.node_pools
        if pool.mode != "karpenter" and CHIPS[pool.chip].serves
        for found in _pool(pool, inventory)
    ]


def _pool(pool: NodePoolSettings, inventory: Inventory) -> list[Finding]:
    name = f"pool/{pool.name}"
    nodes = pool_nodes(pool, inventory)
    if not nodes:
        selector = ",".join(f"{key}={value}" for key, value in pool.node_selector().items())
        show = f"kubectl get nodes -l {selector}"
        if pool.mode == "labels":
            show = f"kubectl get nodes {' '.join(pool.nodes)}"
        return [finding("pool", "error", name, "no node of this pool is there", f"compare with: {show}")]
    found: list[Finding] = []
    if len(nodes) < pool.size:
        cause = f"{len(nodes)} of {pool.size} nodes are there"
        found.append(finding("pool", "warning", name, cause, "correct count, or add the nodes"))
    stack = CHIPS[pool.chip].stack(pool.driver_stack)
    for node in nodes:
        found += [*_labels(pool, node, stack), *_chips(pool, node, stack), *_taints(pool, node)]
    return [*found, *_free(pool, nodes, stack, inventory)]


def pool_nodes(pool: NodePoolSettings, inventory: Inventory) -> list[Object]:
    """The nodes of a pool: by name where the stack labels them, else by the labels that pods select."""
    if pool.mode == "labels":
        return [node for node in inventory.nodes if node["metadata"]["name"] in pool.nodes]
    return [node for node in inventory.nodes if pool.node_labels().items() <= labels_of(node).items()]


def _labels(pool: NodePoolSettings, node: Object, stack: DriverStack | None) -> list[Finding]:
    """A device plugin's labels are required and never written by us."""
    name, has = f"node/{node['metadata']['name']}", labels_of(node)
    found = []
    for key, values in (stack.required_labels if stack else {}).items():
        if key not in has or (values and has[key] not in values):
            wanted = " or ".join(values) or "any value"
            cause = f"label {key} is {has.get(key, 'missing')}, and driver stack {pool.driver_stack} sets {wanted}"
            fix = f"install or repair the device plugin; see: kubectl get nodes -L {key}"
            found.append(finding("driver", "error", name, cause, fix))
    arch = has.get(labels.ARCH)
    if arch not in (None, pool.arch):
        found.append(
            finding("arch", "error", name, f"is {arch}, and the pool says {pool.arch}", "correct nodePools.arch")
        )
    return found


def _chips(pool: NodePoolSettings, node: Object, stack: DriverStack | None) -> list[Finding]:
    if stack is None or stack.resource is None:
        return []
    offered = allocatable(node, stack.resource)
    if offered >= pool.chips_per_node:
        return []
    name = node["metadata"]["name"]
    cause = f"offers {offered} {stack.resource}, and the pool counts on {pool.chips_per_node}"
    fix = f"correct driverStack or chipsPerNode; see: kubectl get node {name} -o jsonpath='{{.status.allocatable}}'"
    return [finding("chips", "error", f"node/{name}", cause, fix)]


def _taints(pool: NodePoolSettings, node: Object) -> list[Finding]:
    taints = [taint for taint in node["spec"].get("taints", ()) if taint["effect"] in ("NoSchedule", "NoExecute")]
    foreign = [taint for taint in taints if not any(_tolerates(each.toleration(), taint) for each in pool.tolerations)]
    return [
        finding(
            "taint",
            "error",
            f"node/{node['metadata']['name']}",
            f"has taint {taint['key']}, which the pool's pods don't tolerate",
            "add it to the pool's tolerations, or take it off",
        )
        for taint in foreign
        if not taint["key"].startswith("node.kubernetes.io/")
    ]


def _tolerates(toleration: dict[str, str], taint: Object) -> bool:
    same = toleration["key"] == taint["key"] and toleration["effect"] == taint["effect"]
    return same and (toleration["operator"] == "Exists" or toleration.get("value") == taint.get("value"))


def _free(
    pool: NodePoolSettings, nodes: list[Object], stack: DriverStack | None, inventory: Inventory
) -> list[Finding]:
    """Others' pods leave enough chips; the stack's own are to be replaced and don't count."""
    if stack is None or stack.resource is None or "pods" in inventory.blind:
        return []
    names = {node["metadata"]["name"] for node in nodes}
    taken = sum(
        requested(pod, stack.resource)
        for pod in inventory.pods
        if pod["spec"].get("nodeName") in names and labels_of(pod).get("app.kubernetes.io/part-of") != "moonstack"
    )
    offered = sum(allocatable(node, stack.resource) for node in nodes)
    if not taken or offered - taken >= pool.size * pool.chips_per_node:
        return []
    cause = f"pods of others hold {taken} of {offered} {stack.resource}"
    show = "kubectl get pods -A -o wide"
    return [finding("chipsTaken", "warning", f"pool/{pool.name}", cause, f"move them or lower replicas; see: {show}")]


CHECKS = (pools_have_their_nodes,)
