"""Behind internal listeners: requests leave with the target's model name and without anything that is ours or the client's."""

from collections.abc import Sequence
from typing import Final

from components.envoy import connection, filters
from components.envoy.clusters import RENAME_LISTENER
from components.envoy.replies import local_replies
from components.envoy.schema import (
    CLUSTER_HEADER,
    FIRST_HEADER,
    MODEL_HEADER,
    STREAM_HEADER,
    VERSION_HEADER,
    WISH_HEADER,
    Json,
    extension,
    seconds,
)
from rules.envoy_keys import CLIENT_HEADER
from settings.settings import Settings

REMOVED: Final = (
    MODEL_HEADER, STREAM_HEADER, CLUSTER_HEADER, FIRST_HEADER, WISH_HEADER, CLIENT_HEADER, VERSION_HEADER,
    "x-forwarded-for", "x-forwarded-proto", "x-request-id", "x-envoy-external-address", "x-envoy-attempt-count",
    "x-envoy-expected-rq-timeout-ms", "cookie", "x-api-key", "api-key", "openai-organization", "openai-project",
)  # fmt: skip
"""What never leaves the gateway: whoever asks, and how it was routed."""


def rename_listener(settings: Settings) -> Json:
    """For aliases that the cluster serves: the model's own name goes into the body, then to its routers."""
    longest = max((model.longest_request_seconds for model in settings.models), default=1)
    routes = outward_routes(
        {"cluster_header": CLUSTER_HEADER},
        streamed=seconds(settings.gateway.first_byte_seconds),
        whole=seconds(longest),
    )
    http_filters = [filters.lua("target", filters.target_source(settings, outside=False)), outward_router()]
    manager = connection.behind_internal(
        RENAME_LISTENER, http_filters, routes, local_reply_config=local_replies(RENAME_LISTENER)
    )
    return {
        "name": RENAME_LISTENER,
        "internal_listener": {},
        "per_connection_buffer_limit_bytes": settings.gateway.max_body_bytes,
        "filter_chains": [{"filters": [manager]}],
    }


def outward_router() -> Json:
    """A router that adds no headers of Envoy's own, to requests or to answers."""
    return extension(
        "envoy.filters.http.router", "extensions.filters.http.router.v3.Router", suppress_envoy_headers=True
    )


def outward_routes(
    out: Json, streamed: str, whole: str, payers: Sequence[tuple[Json | None, Json]] = ((None, {}),)
) -> Json:
    """Routes by who pays, by first attempt (its circuit breaker is the narrower one) and by stream (its silence is the shorter one).

    `payers` are a header matcher, or None for everyone else, and what its routes carry. Filters are switched on by the route
    that is found before `target.lua` has set the header of first attempts, so a missing one counts as "not the first".
    """
    routes = [
        {
            "match": {
                "prefix": "/",
                "headers": [
                    *([payer] if payer else []),
                    _equals(STREAM_HEADER, "true", other=not stream),
                    _equals(FIRST_HEADER, "true", other=not first),
                ],
            },
            "route": {
                **out,
                "timeout": "0s",
                "idle_timeout": streamed if stream else whole,
                "priority": "DEFAULT" if first else "HIGH",
            },
            **more,
        }
        for payer, more in payers
        for first in (True, False)
        for stream in (True, False)
    ]
    host = {"name": "out", "domains": ["*"], "request_headers_to_remove": list(REMOVED), "routes": routes}
    return {"name": "out", "virtual_hosts": [host]}


def _equals(header: str, value: str, other: bool) -> Json:
    return {
        "name": header,
        "string_match": {"exact": value},
        "treat_missing_header_as_empty": True,
        **({"invert_match": True} if other else {}),
    }
