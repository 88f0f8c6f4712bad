"""How a model's engines are changed for new ones, and whether the pools have room for it: arithmetic of pools, pods and chips.

A set that changes as a whole beside the old one (blue/green) needs its chips twice; one pod after the other needs one pod's more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rules.connectors import Backend
from rules.placement import Demand, nodes_needed

Strategy = Literal["surge", "blueGreen"]
Way = Literal["surge", "blueGreen", "groups", "interrupts", "stuck"]
"""surge: one pod more of each role at a time. blueGreen: the whole new set beside the old one. groups: one whole group after the other.
interrupts: the only group goes before its successor comes. stuck: what is to come finds no chips, and the rollout never ends."""


@dataclass(frozen=True, slots=True)
class PoolSize:
    """A pool as the arithmetic sees it."""

    name: str
    nodes: int
    chips_per_node: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a change of a model's engines takes. `missing` counts nodes by pool, for the way itself and for blue/green."""

    way: Way
    missing: dict[str, int]
    missing_for_blue_green: dict[str, int]

    @property
    def blue_green(self) -> bool:
        """Whether the pools have room for all of the model's engines twice, so that old and new sets can stand side by side."""
        return not self.missing_for_blue_green


def rollout(
    mine: Sequence[Demand],
    all_demands: Sequence[Demand],
    pools: Sequence[PoolSize],
    backend: Backend,
    groups: int = 1,
    strategy: Strategy = "surge",
) -> Rollout:
    """The way a model's engines change, beside everything that runs: `mine` are its own demands, and among `all_demands`."""
    surge = [Demand(each.path, each.pool, 1, each.chips) for each in mine]
    twice = missing_nodes([*all_demands, *mine], pools)
    if backend == "kthena":
        return Rollout("groups" if groups > 1 else "interrupts", {}, twice)
    if strategy == "blueGreen":
        return Rollout("stuck" if twice else "blueGreen", twice, twice)
    missing = missing_nodes([*all_demands, *surge], pools)
    return Rollout("stuck" if missing else "surge", missing, twice)


def missing_nodes(demands: Sequence[Demand], pools: Sequence[PoolSize]) -> dict[str, int]:
    """Nodes that pools lack for the demands, by pool; a pool that has enough is left out."""
    return {pool.name: lacking for pool in pools if (lacking := wanted_nodes(demands, pool) - pool.nodes) > 0}


def wanted_nodes(demands: Sequence[Demand], pool: PoolSize) -> int:
    """Nodes of a pool that hold the chips of all its demands; a pod larger than a node is none of them."""
    here = [each for each in demands if each.pool == pool.name and 0 < each.chips <= pool.chips_per_node]
    return nodes_needed(here, pool.chips_per_node)
