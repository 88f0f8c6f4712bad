"""Rate limits: per address before the key is known, per key after it, and per pod towards the channel."""

from typing import Any, Final

from components.envoy.access_log import KEY
from components.envoy.schema import Json, extension, typed
from rules.envoy_keys import CLIENT_HEADER
from settings.settings import Settings

CLIENT_METADATA: Final = {"key": KEY, "path": [{"key": "client"}]}
FILTER: Final = "client-limits"
FILTER_TYPE: Final = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
LIMIT_HEADER: Final = "x-moonstack-limit"
"""Names the cap of the channel that stopped a request, beside the body's words."""
_ALWAYS: Final = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
_ADDRESSES: Final = 10_000
"""Addresses that are counted at a time; the least recent one is forgotten first."""


def bucket(rate: int, burst: int | None = None) -> Json:
    """A token bucket refilled every second; the burst is the rate when not given."""
    return {"max_tokens": max(burst or rate, rate), "tokens_per_fill": rate, "fill_interval": "1s"}


def address_limit(settings: Settings) -> Json:
    """Floods from one address, valid key or not."""
    limits = settings.gateway.limits
    return extension(
        "address-limits", FILTER_TYPE.removeprefix("type.googleapis.com/envoy."),
        **_filter("address", headers=False),
        rate_limits=[{"actions": [{"remote_address": {}}]}],
        descriptors=[
            {
                "entries": [{"key": "remote_address"}],
                "token_bucket": bucket(limits.address_qps, limits.address_burst),
            }
        ],
        max_dynamic_descriptors=_ADDRESSES,
    )  # fmt: skip


def client_limits(settings: Settings) -> Json:
    """The per-key limits as an ECDS resource: `qps` of each client key that has one; a burst is twice the rate (A3: 120, 240)."""
    descriptors = [
        {"entries": [{"key": "client", "value": key.id}], "token_bucket": bucket(key.qps, 2 * key.qps)}
        for key in settings.keys.keys
        if key.qps and not key.outbound
    ]
    config = {
        "@type": FILTER_TYPE,
        **_filter("client"),
        "rate_limits": [{"actions": [{"metadata": {"descriptor_key": "client", "metadata_key": CLIENT_METADATA}}]}],
        "descriptors": descriptors,
    }
    return typed("config.core.v3.TypedExtensionConfig", name=FILTER, typed_config=config)


def channel_limits(settings: Settings) -> list[Json]:
    """What this pod may send to the channel, whoever asks: the day's cap where there is one, then `channel.ratelimit`.

    An outbound key's own `qps` narrows the rate for those it pays for.
    """
    limit, cap = settings.channel.ratelimit, settings.channel.daily_requests
    keys = {key.id: key.qps for key in settings.keys.keys if key.outbound and key.qps}
    rate = extension(
        "channel-rate", FILTER_TYPE.removeprefix("type.googleapis.com/envoy."),
        **_filter("channel_rate", bucket(limit.qps_per_pod, limit.burst)),
        always_consume_default_token_bucket=True,
        rate_limits=[{"actions": [_pays_with(settings, key_id)]} for key_id in keys],
        descriptors=[
            {"entries": [{"key": "key", "value": key_id}], "token_bucket": bucket(qps, 2 * qps)}
            for key_id, qps in keys.items()
        ],
    )  # fmt: skip
    return [*([_daily_cap(max(1, cap // most_pods(settings)))] if cap else []), rate]


def most_pods(settings: Settings) -> int:
    """Gateway pods at most: a cap for all is a pod's own share, as pods count by themselves."""
    scaling = settings.autoscaling.gateway
    return scaling.max_replicas if scaling.enabled else settings.gateway.replicas


def _daily_cap(requests: int) -> Json:
    """A bucket that is filled once a day, counted from the pod's start."""
    day = {"max_tokens": requests, "tokens_per_fill": requests, "fill_interval": "86400s"}
    reason = {"key": LIMIT_HEADER, "value": "daily-cap"}
    return extension(
        "channel-cap", FILTER_TYPE.removeprefix("type.googleapis.com/envoy."),
        **_filter("channel_cap", day, headers=False),
        response_headers_to_add=[{"header": reason, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}],
    )  # fmt: skip


def client_matcher(clients: list[str]) -> Json:
    """Matches requests of given clients."""
    return {"name": CLIENT_HEADER, "string_match": {"safe_regex": {"regex": "|".join(clients)}}}


def _pays_with(settings: Settings, key_id: str) -> Json:
    """True for the clients whose requests a key pays for: those that name it, or all that name none."""
    own = settings.channel.key == key_id
    clients = [key.id for key in settings.keys.keys if key.channel_key and (key.channel_key != key_id) is own]
    matcher = client_matcher(clients or ["none"])
    return {
        "header_value_match": {
            "descriptor_key": "key",
            "descriptor_value": key_id,
            "expect_match": not own,
            "headers": [matcher],
        }
    }


def _filter(prefix: str, token_bucket: Json | None = None, headers: bool = True) -> dict[str, Any]:
    """Without a bucket of its own the filter limits what its descriptors match, and adds headers to nothing else."""
    return {
        "stat_prefix": prefix,
        **({"token_bucket": token_bucket} if token_bucket else {}),
        "filter_enabled": _ALWAYS,
        "filter_enforced": _ALWAYS,
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03" if headers else "OFF",
        "enable_retry_after_header": True,
    }
