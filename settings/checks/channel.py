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


def the_channel_is_reached_safely(settings: "Settings") -> list[Problem]:
    """The channel's key leaves over TLS only, and the steps of the backoff are in order."""
    channel = settings.channel
    problems = []
    if channel.base_url.scheme != "https" or channel.base_url.username or channel.base_url.query:
        problems.append(
            Problem(
                "channel.baseUrl", f"{channel.base_url.scheme}://…", "must be https, without credentials or query",
                "write https://host/path",
            )
        )  # fmt: skip
    if channel.retry.backoff_max_ms < channel.retry.backoff_base_ms:
        problems.append(
            Problem(
                "channel.retry.backoffMaxMs", channel.retry.backoff_max_ms,
                f"is less than backoffBaseMs {channel.retry.backoff_base_ms}", "raise it",
            )
        )  # fmt: skip
    if channel.ratelimit.burst < channel.ratelimit.qps_per_pod:
        problems.append(
            Problem(
                "channel.ratelimit.burst", channel.ratelimit.burst,
                f"is less than qpsPerPod {channel.ratelimit.qps_per_pod}", "raise it",
            )
        )  # fmt: skip
    return problems


def clients_name_outbound_keys(settings: "Settings") -> list[Problem]:
    """`channelKey` of a client is a declared outbound key."""
    outbound = [key.id for key in settings.keys.keys if key.outbound]
    return [
        Problem(
            f"keys.keys[{index}].channelKey", key.channel_key, "is not a declared outbound key",
            f"choose one of: {', '.join(outbound) or 'none declared'}",
        )
        for index, key in enumerate(settings.keys.keys)
        if key.channel_key and (key.outbound or key.channel_key not in outbound)
    ]  # fmt: skip


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    quota_covers_the_gateways,
    aliases_are_sound,
    the_channel_is_reached_safely,
    clients_name_outbound_keys,
)
