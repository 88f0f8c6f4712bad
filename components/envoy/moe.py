"""The group of all aliases: each request goes to one of them by `channel.moe.routingStrategy`, the others stand in for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.envoy import clusters, plan
from components.envoy.filters import CHOOSE
from components.envoy.plan import PublicModel
from components.envoy.routes import chat_route, composite_name, retry_policy, route_action, silence
from components.envoy.schema import Json, extension, typed
from rules.chips import CHIPS
from settings.capacity_plan import chip_cost
from settings.channel import ChannelModel
from settings.settings import Settings

LEAST_BUSY: Final = "least-busy"
FIRST, AGAIN = "least-busy-first", "least-busy-again"
"""All targets are tried by load and threshold, each once; when all are above it, one more attempt is taken all the same."""


@dataclass(frozen=True, slots=True)
class Expert:
    """An alias of the group, what a chip hour costs where it runs, and how much the operator prefers it."""

    model: PublicModel
    weight: float
    cost: float
    rank: int


def group_routes(settings: Settings, models: Sequence[PublicModel]) -> list[Json]:
    """Routes of the group's name; none when no alias has a place."""
    experts = experts_of(settings, models)
    if not experts:
        return []
    return [
        chat_route(settings.channel_models.group, stream, _choice(settings, experts, stream))
        for stream in (True, False)
    ]


def measured(settings: Settings, model: PublicModel) -> Json:
    """What an alias's own route carries, so that its answers are timed for the group under latency_optimized."""
    timed = model.alias and settings.channel.moe.routing_strategy == "latency_optimized"
    return _choose([model.name]) if timed else {}


def group_clusters(settings: Settings, models: Sequence[PublicModel]) -> list[Json]:
    """What load balancing needs: all aliases' first targets as endpoints of one cluster, and a composite that retries in it."""
    experts = experts_of(settings, models)
    if settings.channel.moe.routing_strategy != "load_balanced" or not experts:
        return []
    targets = [(expert.model.attempts[0], round(expert.weight * 1000)) for expert in experts]
    least = extension(
        "least-request", "extensions.load_balancing_policies.least_request.v3.LeastRequest",
        active_request_bias={"default_value": 2.0, "runtime_key": "moe.bias"},
    )  # fmt: skip
    policy = {"load_balancing_policy": {"policies": [{"typed_extension_config": least}]}}
    members = [FIRST] * _attempts(experts) + [AGAIN]
    return [
        {**clusters.hop(FIRST, targets, first=True), **policy},
        {**clusters.hop(AGAIN, targets, first=False), **policy},
        clusters.composite(LEAST_BUSY, members),
    ]


def experts_of(settings: Settings, models: Sequence[PublicModel]) -> list[Expert]:
    """The aliases that have a place, the most preferred chip first."""
    by_alias = {model.name: model for model in models if model.alias}
    found = [
        Expert(
            by_alias[entry.alias],
            entry.weight,
            chip_price(settings, entry, by_alias[entry.alias]),
            plan.preference_rank(settings, entry),
        )
        for entry in settings.channel_models.models
        if entry.alias in by_alias
    ]
    return sorted(found, key=lambda expert: expert.rank)


def cheapest(experts: Sequence[Expert]) -> list[Expert]:
    """Those with the lowest chip price; among equals, those on the most preferred chip."""
    best = min((expert.cost, expert.rank) for expert in experts)
    return [expert for expert in experts if (expert.cost, expert.rank) == best]


def chip_price(settings: Settings, entry: ChannelModel, model: PublicModel) -> float:
    """Yuan a chip and hour: of the pools where the cluster serves it, else of the cheapest chip of its affinity."""
    first = model.attempts[0]
    if first.place == "cluster":
        served = next(item for item in settings.models if item.name == first.model)
        pools = {pool.name: pool for pool in settings.node_pools}
        used = {role.pool for placements in served.roles().values() for role in placements}
        return min(chip_cost(pools[name]) for name in used)
    vendors = plan.affinity(entry)
    return min((chip.cost_per_hour for chip in CHIPS.values() if chip.vendor in vendors), default=0.0)


def _choose(names: list[str]) -> Json:
    choose = typed("extensions.filters.http.lua.v3.LuaPerRoute", name=CHOOSE, filter_context={"experts": names})
    return {"typed_per_filter_config": {CHOOSE: choose}}


def _attempts(experts: Sequence[Expert]) -> int:
    return max(len(expert.model.attempts) for expert in experts)


def _choice(settings: Settings, experts: list[Expert], stream: bool) -> Json:
    slowest = max((expert.model for expert in experts), key=lambda model: silence(settings, model, stream))
    action: dict[str, Any] = route_action(settings, slowest, _attempts(experts), stream)
    match settings.channel.moe.routing_strategy:
        case "load_balanced":
            policy = retry_policy(settings, _attempts(experts) + 1, silence(settings, slowest, stream))
            policy |= {"host_selection_retry_max_attempts": 2 * len(experts)}
            return {"route": {**action, "cluster": LEAST_BUSY, "retry_policy": policy}}
        case "latency_optimized":
            fallback = composite_name(experts[0].model)
            return {"route": {**action, "cluster": fallback}, **_choose([expert.model.name for expert in experts])}
        case _:
            weighted = [
                {"name": composite_name(expert.model), "weight": round(expert.weight * 1000)}
                for expert in cheapest(experts)
            ]
            return {"route": {**action, "weighted_clusters": {"clusters": weighted}}}
