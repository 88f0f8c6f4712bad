"""Whether the chips that a stack asks for exist: arithmetic of pools, pods and chips."""

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
    """Nodes that hold all pods, largest first into the first node with room: exact where sizes divide one another (1, 2, 4, 8)."""
    free: list[int] = []
    for chips in sorted((d.chips for d in demands for _ in range(d.pods)), reverse=True):
        node = next((index for index, room in enumerate(free) if room >= chips), None)
        if node is None:
            free.append(chips_per_node - chips)
        else:
            free[node] -= chips
    return len(free)
