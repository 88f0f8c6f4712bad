"""How many pods and chips a stack may come to hold, and what they cost: minimum, as declared, maximum."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from rules import timing
from rules.chips import CHIPS, ChipProfile
from rules.placement import Demand
from rules.quantity import to_bytes
from rules.warm_pool import HOURS_PER_MONTH
from rules.warm_share import Claim, most_pods
from settings.autoscaling import Role
from settings.models import ModelSettings, RoleSettings
from settings.node_pools import NodePoolSettings

if TYPE_CHECKING:
    from settings.settings import Settings

ROLLOUT_SURGE = 1
"""Every engine Deployment rolls with maxSurge 1, maxUnavailable 0: one pod more while it lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePlan:
    """One role of a model on one pool: replicas as a scaler counts them, pods as nodes and bills count them, and warm pods."""

    path: str
    model: ModelSettings
    role: Role
    placement: RoleSettings
    least: int
    """Fewest replicas: the scaler's bound (with backend kthena of each group), else the replicas as declared."""
    most: int
    warm: int
    """Warm pods to start with; `warm_high` is what the weekly review may make of them."""
    warm_high: int
    scaled: bool

    @property
    def pods_a_replica(self) -> int:
        """Pods for each replica: one in every group, of as many nodes as an engine spans; natively 1."""
        return self.model.groups * self.placement.nodes

    @property
    def low(self) -> int:
        """Pods at least."""
        return self.pods_a_replica * self.least

    @property
    def declared(self) -> int:
        """Pods to start with."""
        return self.pods_a_replica * self.placement.replicas

    @property
    def high(self) -> int:
        """Pods at most; a stack that starts with more than its scaler allows has them until it is scaled in."""
        return self.pods_a_replica * max(self.most, self.placement.replicas)


def role_plans(settings: "Settings") -> Iterator[RolePlan]:
    """Every role and pool of the stack with its bounds."""
    scaling, warm = settings.autoscaling.engines, settings.warm_pool
    for index, model in enumerate(settings.models):
        for name, placements in model.roles().items():
            role = cast(Role, name)
            warmed = warm.enabled and role in warm.roles and model.backend == "native"
            for position, placement in enumerate(placements):
                least, most = scaling.bounds(role) if scaling.enabled else (placement.replicas, placement.replicas)
                yield RolePlan(
                    path=f"models[{index}].{name}[{position}]",
                    model=model,
                    role=role,
                    placement=placement,
                    least=least,
                    most=most,
                    warm=warm.replicas if warmed else 0,
                    warm_high=warm.max_replicas if warmed else 0,
                    scaled=scaling.enabled,
                )


def most_demands(settings: "Settings") -> list[Demand]:
    """Pods at their most: maximum replicas, warm pods, and the surge of a rollout of everything at once."""
    demands, warm = [], _most_warm(settings)
    for plan in role_plans(settings):
        place = plan.placement
        if plan.scaled:
            demands.append(Demand("autoscaling.engines.maxReplicas", place.pool, plan.high, place.chips))
        else:
            demands.append(Demand(f"{plan.path}.replicas", place.pool, plan.high, place.chips))
        if plan.warm_high:
            limit = "maxReplicas" if settings.warm_pool.chips_per_pool is None else "chipsPerPool"
            demands.append(Demand(f"warmPool.{limit}", place.pool, warm[plan.path], place.chips))
        if plan.model.backend == "native":
            surge = ROLLOUT_SURGE * (2 if plan.warm_high else 1)
            demands.append(Demand(f"{plan.path} (surge of a rollout)", place.pool, surge, place.chips))
    return demands


def warm_claims(settings: "Settings") -> dict[str, list[Claim]]:
    """By node pool: the warm pool of each role there, by its path, from its minimum to its maximum."""
    claims: dict[str, list[Claim]] = {}
    for plan in role_plans(settings):
        if plan.warm_high:
            low, chips = settings.warm_pool.min_replicas, plan.placement.chips
            claim = Claim(name=plan.path, chips=chips, low=low, wanted=plan.warm_high)
            claims.setdefault(plan.placement.pool, []).append(claim)
    return claims


def _most_warm(settings: "Settings") -> dict[str, int]:
    """Warm pods of each role at most, by its path: what the review may make of them within the budget of their node pool."""
    budget, most = settings.warm_pool.chips_per_pool, {}
    for claims in warm_claims(settings).values():
        most |= {claim.name: claim.wanted for claim in claims} if budget is None else most_pods(claims, budget)
    return most


def chip_cost(pool: NodePoolSettings) -> float:
    """Yuan a chip and hour: the pool's own figure, else the chip profile's."""
    if pool.cost_per_chip_hour is not None:
        return pool.cost_per_chip_hour
    return CHIPS[pool.chip].cost_per_hour


def costs(settings: "Settings") -> dict[str, float]:
    """Yuan an hour at minimum, as declared and at maximum, and of the warm pool an hour and a month (B6)."""
    pools = {pool.name: pool for pool in settings.node_pools}
    totals: dict[str, float] = {"minimum": 0.0, "declared": 0.0, "maximum": 0.0, "warmPool": 0.0}
    for plan in role_plans(settings):
        pod = plan.placement.chips * chip_cost(pools[plan.placement.pool])
        totals["minimum"] += pod * plan.low
        totals["declared"] += pod * plan.declared
        totals["maximum"] += pod * plan.high
        totals["warmPool"] += pod * plan.warm
    totals["warmPoolPerMonth"] = totals["warmPool"] * HOURS_PER_MONTH
    return {name: round(value, 2) for name, value in totals.items()}


def load_seconds(model: ModelSettings, chip: ChipProfile) -> int:
    """Expected seconds from container start to a loaded model."""
    bandwidth = model.weights.load_bandwidth
    return timing.load_seconds(
        to_bytes(model.weights.size),
        to_bytes(bandwidth) if bandwidth else chip.load_bytes_per_second,
        chip.engine_start_seconds,
    )
