"""Blue/green rollouts: who can have one, and whether the pools have room for old and new sets at once."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from rules.placement import Demand
from rules.problem import Problem
from rules.quantity import parse
from rules.upgrade import PoolSize, wanted_nodes
from settings.capacity_plan import RolePlan, role_plans

if TYPE_CHECKING:
    from settings.node_pools import NodePoolSettings
    from settings.settings import Settings

BLUE_GREEN: Final = "blueGreen"
_FIX: Final = "use rollout: surge, lower replicas, or enlarge the pool"


def sets_can_be_made(settings: "Settings") -> list[Problem]:
    """Two sets side by side are a native model's of a fixed size: Kthena replaces groups itself, and a scaler's count, floors and
    history belong to one Deployment's name, so that a new set would begin too small for the load it takes over."""
    problems = []
    for index, model in enumerate(settings.models):
        if model.rollout != BLUE_GREEN:
            continue
        path = f"models[{index}].rollout"
        if model.backend == "kthena":
            fix = "remove it, and use groups: 2: one whole group after the other"
            problems.append(Problem(path, BLUE_GREEN, "Kthena replaces whole groups by itself", fix))
            continue
        for key, enabled in (
            ("autoscaling.engines", settings.autoscaling.engines.enabled),
            ("warmPool", settings.warm_pool.enabled),
        ):
            if enabled:
                limit = f"{key} is enabled, and a new set would begin with the declared replicas, whatever the load"
                problems.append(Problem(path, BLUE_GREEN, limit, f"use rollout: surge, or {key}.enabled: false"))
    return problems


def both_sets_fit(settings: "Settings") -> list[Problem]:
    """Each pool holds, beside everything else, old and new sets of all its blue/green models: one image changes them all at once."""
    plans = list(role_plans(settings))
    twice = [plan for plan in plans if plan.model.rollout == BLUE_GREEN and plan.model.backend == "native"]
    return [
        problem
        for index, pool in enumerate(settings.node_pools)
        for problem in _short_of(f"nodePools[{index}]", pool, plans, twice)
    ]


def _short_of(where: str, pool: "NodePoolSettings", plans: list[RolePlan], twice: list[RolePlan]) -> Iterator[Problem]:
    """The first of chips, CPU and memory that a pool lacks; chips that it lacks for one set alone are another check's."""
    mine = [plan for plan in twice if plan.placement.pool == pool.name]
    if not mine:
        return
    here = [plan for plan in plans if plan.placement.pool == pool.name]
    path = f"{mine[-1].path.partition('.')[0]}.rollout"
    models = " and ".join(dict.fromkeys(plan.model.name for plan in mine))
    what = f"old and new sets of {models} side by side, with all else on pool {pool.name},"
    size = PoolSize(pool.name, pool.size, pool.chips_per_node)
    once, both = (wanted_nodes(_demands(those), size) for those in (here, [*here, *mine]))
    if once <= pool.size < both:
        yield Problem(
            path, BLUE_GREEN, f"{what} take {both} nodes of {pool.chips_per_node} chips; it has {pool.size}", _FIX
        )
        return
    for name in ("cpu", "memory"):
        there = pool.size * parse(getattr(pool, name))
        both = sum(plan.declared * parse(getattr(plan.placement, name)) for plan in [*here, *mine])
        if both > there:
            has = f"{pool.size} × {getattr(pool, name)}"
            limit = f"{what} request {both / there:.2f} times the {name} of its nodes ({has})"
            yield Problem(path, BLUE_GREEN, limit, f"{_FIX}; {where}.{name} says what a node has")
            return


def _demands(plans: list[RolePlan]) -> list[Demand]:
    return [Demand(plan.path, plan.placement.pool, plan.declared, plan.placement.chips) for plan in plans]


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (sets_can_be_made, both_sets_fit)
