"""Where the real scheduler put the pods: placed or not and why, chips used and free, what a rollout needs, what an hour costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from local.rehearse.nodes import PREFIX, driver_stack
from rules import labels
from settings.capacity_plan import chip_cost
from settings.node_pools import NodePoolSettings
from settings.settings import Settings


@dataclass(frozen=True)
class Unplaced:
    """A pod without a node, and the scheduler's own words."""

    pod: str
    pool: str
    chips: int
    reason: str


@dataclass(frozen=True)
class PoolReport:
    """Chips of one pool. `surge` is the number of further pods of the pool's largest kind that fit beside all others."""

    pool: str
    nodes: int
    chips: int
    used: int
    free: int
    pods: int
    largest_pod: int
    surge: int
    missing: int
    """Chips that unplaced pods ask for."""
    cost_per_hour: float
    """Yuan an hour for the chips in use."""


@dataclass(frozen=True)
class Report:
    """The whole rehearsal."""

    stack: str
    seconds: float
    pods: int
    placed: int
    expanded: bool
    """Whether ModelServings were expanded by us, in place of Kthena's controller."""
    pools: tuple[PoolReport, ...]
    unplaced: tuple[Unplaced, ...]
    rollouts: Mapping[str, str] = field(default_factory=dict)
    """Model → how its engines would change for new ones, and whether the pools have room for both sets."""
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Every pod has a node."""
        return not self.unplaced and self.placed == self.pods

    @property
    def cost_per_hour(self) -> float:
        """Yuan an hour for all chips in use."""
        return round(sum(pool.cost_per_hour for pool in self.pools), 2)

    def document(self) -> dict[str, Any]:
        """The report for machines."""
        return {"schema": 1, **asdict(self), "ok": self.ok, "cost_per_hour": self.cost_per_hour}


def pool_reports(settings: Settings, pods: Sequence[dict[str, Any]]) -> tuple[PoolReport, ...]:
    """One report a pool, from the pods of the stack as the API server has them."""
    return tuple(_pool_report(pool, pods) for pool in settings.node_pools)


def unplaced(settings: Settings, pods: Sequence[dict[str, Any]]) -> tuple[Unplaced, ...]:
    """The pods that have no node."""
    pools = {pool.name: pool for pool in settings.node_pools}
    return tuple(
        Unplaced(
            pod=pod["metadata"]["name"],
            pool=(name := pool_of(pod)),
            chips=_chips(pod, pools[name]) if name in pools else 0,
            reason=_reason(pod),
        )
        for pod in pods
        if not pod["spec"].get("nodeName")
    )


def pool_of(pod: dict[str, Any]) -> str:
    """The pool that a pod is meant for; empty for pods without chips."""
    return (pod["spec"].get("nodeSelector") or {}).get(labels.POOL, "")


def _pool_report(pool: NodePoolSettings, pods: Sequence[dict[str, Any]]) -> PoolReport:
    nodes = pool.size
    mine = [pod for pod in pods if pool_of(pod) == pool.name]
    placed = [pod for pod in mine if pod["spec"].get("nodeName")]
    used = sum(_chips(pod, pool) for pod in placed)
    free = [pool.chips_per_node] * nodes
    for pod in placed:
        free[int(pod["spec"]["nodeName"].removeprefix(f"{PREFIX}{pool.name}-"))] -= _chips(pod, pool)
    largest = max((_chips(pod, pool) for pod in mine), default=0)
    return PoolReport(
        pool=pool.name,
        nodes=nodes,
        chips=nodes * pool.chips_per_node,
        used=used,
        free=sum(free),
        pods=len(placed),
        largest_pod=largest,
        surge=sum(room // largest for room in free) if largest else 0,
        missing=sum(_chips(pod, pool) for pod in mine) - used,
        cost_per_hour=round(used * chip_cost(pool), 2),
    )


def _chips(pod: dict[str, Any], pool: NodePoolSettings) -> int:
    resource = driver_stack(pool).resource
    requests = (container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"])
    return sum(int(each.get(resource, 0)) for each in requests) if resource else 0


def _reason(pod: dict[str, Any]) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    found = next((each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), None)
    return found.get("message", "") if found else "the scheduler has not looked at it yet"
