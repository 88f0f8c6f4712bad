"""The HTTP connection managers: the public one, the one behind internal listeners, and the plain ones for operations."""

from typing import Any, Final

from components.envoy import access_log, filters
from components.envoy.replies import local_replies
from components.envoy.schema import HEADER_PREFIX, Json, Pod, extension, from_file, seconds
from settings.settings import Settings

_HCM: Final = "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
STAT_PREFIX: Final = "gateway"
ROUTER: Final = extension("envoy.filters.http.router", "extensions.filters.http.router.v3.Router")


def public(settings: Settings, pod: Pod) -> Json:
    """What clients talk to. Everything that changes while it runs is read from other files, so that this never drains."""
    gateway = settings.gateway
    return _manager(
        STAT_PREFIX,
        server_name="moonstack",
        use_remote_address=True,
        xff_num_trusted_hops=gateway.trusted_hops,
        always_set_request_id_in_response=True,
        request_headers_timeout=seconds(gateway.limits.header_seconds),
        request_timeout=seconds(gateway.stream_timeout_seconds),
        stream_idle_timeout=seconds(gateway.stream_timeout_seconds),
        max_request_headers_kb=gateway.limits.header_kilobytes,
        common_http_protocol_options={
            "idle_timeout": seconds(gateway.client_idle_seconds),
            "max_headers_count": gateway.limits.header_count,
            "headers_with_underscores_action": "REJECT_REQUEST",
        },
        http2_protocol_options={"max_concurrent_streams": gateway.max_concurrent_streams},
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="KEEP_UNCHANGED",
        early_header_mutation_extensions=[_strip_headers()],
        rds={"route_config_name": "public", "config_source": from_file(pod.config, "routes.yaml")},
        http_filters=[*filters.public(settings, pod), _public_router()],
        local_reply_config=local_replies(STAT_PREFIX),
        access_log=_logs(settings),
    )


def behind_internal(prefix: str, http_filters: list[Json], route_config: Json, **options: Any) -> Json:
    """Requests that come from this same Envoy, over an internal listener."""
    return _manager(
        prefix,
        codec_type="HTTP2",
        generate_request_id=False,
        http_filters=http_filters,
        route_config=route_config,
        stream_idle_timeout="0s",
        **options,
    )


def operations(prefix: str, http_filters: list[Json], routes: list[Json]) -> Json:
    """Health, metrics and drain: fixed routes, nothing else. A draining Envoy would keep each answered connection for 6 s."""
    return _manager(
        prefix,
        http_filters=[*http_filters, ROUTER],
        route_config={"name": prefix, "virtual_hosts": [{"name": prefix, "domains": ["*"], "routes": routes}]},
        request_headers_timeout="5s",
        drain_timeout="0.1s",
        delayed_close_timeout="0.1s",
        normalize_path=True,
    )


def _public_router() -> Json:
    """Counts no statuses by cluster: `envoy_moonstack_requests` has them with more, and the channel's own router those of the channel."""
    return extension("envoy.filters.http.router", "extensions.filters.http.router.v3.Router", dynamic_stats=False)


def _manager(prefix: str, **options: Any) -> Json:
    return extension("envoy.filters.network.http_connection_manager", _HCM, stat_prefix=prefix, **options)


def _strip_headers() -> Json:
    """A client chooses neither its identity nor its route, nor how often Envoy tries, nor a compressed answer: its usage can't be read."""
    reserved = [{"prefix": "x-envoy-"}, {"prefix": HEADER_PREFIX}, {"exact": "accept-encoding"}]
    return extension(
        "reserved-headers", "extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=[{"remove_on_match": {"key_matcher": matcher}} for matcher in reserved],
    )  # fmt: skip


def _logs(settings: Settings) -> list[Json]:
    observability = settings.channel_models.observability
    return [
        *access_log.json_lines(),
        *access_log.request_metrics(latency=observability.record_latency_per_model),
        *(access_log.token_metrics() if observability.record_token_usage else []),
        *([access_log.least_tokens()] if filters.metered(settings) else []),
    ]
