"""The external channel's numbers agree with each other."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules.problem import Problem, duplicates
from rules.quota import channel_quota, weights_sum_to_one

if TYPE_CHECKING:
    from settings.settings import Settings


def quota_covers_the_gateways(settings: "Settings") -> list[Problem]:
    """All gateway pods together stay within the channel's quota (A8)."""
    if not settings.channel.enabled:
        return []
    scaling = settings.autoscaling.gateway
    pods = scaling.max_replicas if scaling.enabled else settings.gateway.replicas
    return channel_quota(pods, settings.channel.ratelimit.qps_per_pod, settings.channel.quota_qps)


def aliases_are_sound(settings: "Settings") -> list[Problem]:
    """Aliases are unique, weights sum to 1, and the fallback order names aliases that exist."""
    models = settings.channel_models.models
    aliases = [model.alias for model in models]
    problems = [
        *duplicates("channelModels.models", aliases, "alias"),
        *(weights_sum_to_one([m.weight for m in models]) if models else []),
    ]
    for index, alias in enumerate(settings.channel_models.fallback.order):
        if alias not in aliases:
            problems.append(
                Problem(
                    f"channelModels.fallback.order[{index}]",
                    alias,
                    "is not a declared alias",
                    f"choose among: {', '.join(aliases)}",
                )
            )
    return problems


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (quota_covers_the_gateways, aliases_are_sound)
