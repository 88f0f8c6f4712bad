"""Whether the chips that a stack asks for exist: arithmetic of pools, pods and chips."""

from collections import Counter
from dataclasses import dataclass

from rules.problem import Problem


@dataclass(frozen=True, slots=True)
class Demand:
    """Pods of one kind that want room on a pool; `path` is where the configuration says so."""

    path: str
    pool: str
    pods: int
    chips: int


def pods_that_fit(nodes: int, chips_per_node: int, chips: int) -> int:
    """How many pods of `chips` chips fit on a pool: a pod is never split over nodes."""
    return nodes * (chips_per_node // chips) if chips else 0


def over_capacity(demands: list[Demand], pool: str, nodes: int, chips_per_node: int) -> list[Problem]:
    """Problems of one pool: a pod larger than a node, or more chips in sum than the pool has."""
    here = [demand for demand in demands if demand.pool == pool and demand.chips]
    problems = [
        Problem(
            d.path,
            d.chips,
            f"a node of pool {pool} has {chips_per_node} chips",
            "ask for fewer chips a pod or use a larger node",
        )
        for d in here
        if d.chips > chips_per_node
    ]
    if problems:
        return problems
    wanted = sum(d.pods * d.chips for d in here)
    if wanted > nodes * chips_per_node:
        parts = " + ".join(f"{d.pods}×{d.chips}" for d in here)
        return [
            Problem(
                here[-1].path,
                f"{parts} = {wanted} chips",
                f"pool {pool} has {nodes}×{chips_per_node} = {nodes * chips_per_node} chips",
                "lower replicas or chips, or enlarge the pool",
            )
        ]
    needed = nodes_needed(here, chips_per_node)
    if needed > nodes:
        parts = " + ".join(f"{d.pods}×{d.chips}" for d in here)
        limit = f"a pod is never split over nodes, so they need {needed} nodes of {chips_per_node} chips; pool {pool} has {nodes}"
        return [Problem(here[-1].path, f"{parts} chips", limit, "lower replicas or chips, or enlarge the pool")]
    return []


def nodes_needed(demands: list[Demand], chips_per_node: int) -> int:
    """Nodes that hold all pods, largest first into the fullest node with room: exact where sizes divide one another (1, 2, 4, 8)."""
    rooms: Counter[int] = Counter()
    for demand in sorted(demands, key=lambda d: -d.chips):
        pods = demand.pods
        for room in sorted(rooms):
            pods -= _fill(rooms, room, demand.chips, pods)
        if pods:
            nodes = -(-pods // (chips_per_node // demand.chips))
            rooms[chips_per_node] += nodes
            _fill(rooms, chips_per_node, demand.chips, pods)
    return rooms.total()


def _fill(rooms: Counter[int], room: int, chips: int, pods: int) -> int:
    """Put up to `pods` pods on the nodes with that room; returns how many found place."""
    each = room // chips
    if not each or not pods:
        return 0
    full = min(rooms[room], pods // each)
    rest = pods - full * each if full < rooms[room] else 0
    rooms[room] -= full
    rooms[room - each * chips] += full
    if rest:
        rooms[room] -= 1
        rooms[room - rest * chips] += 1
    return full * each + rest
