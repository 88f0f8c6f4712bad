"""The external channel: an internal listener of its own, so that its key and headers never meet another target's.

Filters of a composite cluster's member are skipped (envoyproxy/envoy#29318), and retries share one header map: only a
listener of its own keeps the channel's key from a cluster that is tried next.
"""

from typing import Final

from components.envoy import connection, filters, limits
from components.envoy.clusters import CHANNEL_LISTENER, assignment, dns, protocols, socket, threshold
from components.envoy.internal import outward_router, outward_routes
from components.envoy.replies import local_replies, reply, with_details, with_status
from components.envoy.schema import Json, Pod, extension, from_file, milliseconds, response_header, seconds, typed
from rules import channel_gate
from settings.channel import ChannelSettings
from settings.settings import Settings

PROXY: Final = "egress-proxy"


def listener(settings: Settings, pod: Pod) -> Json:
    """Gate, limit, model name, key, then out over TLS."""
    channel = settings.channel
    host, _ = address(channel)
    out = {"cluster": CHANNEL_LISTENER, "host_rewrite_literal": host}
    if prefix := path_prefix(channel):
        out["prefix_rewrite"] = f"{prefix}/"
    routes = outward_routes(
        out,
        streamed=milliseconds(channel.read_timeout_ms),
        whole=seconds(channel.longest_request_seconds),
        payers=_payers(settings),
    )
    http_filters = [
        filters.from_ecds(channel_gate.FILTER, channel_gate.FILTER_TYPE, pod.gate, channel_gate.FILE),
        *limits.channel_limits(settings),
        filters.lua("answer", filters.channel_answer_source()),
        filters.lua("target", filters.target_source(settings, outside=True)),
        *(_credential(key_id, pod) for key_id in keys_in_use(settings)),
        outward_router(),
    ]
    manager = connection.behind_internal(CHANNEL_LISTENER, http_filters, routes, local_reply_config=_replies())
    return {
        "name": CHANNEL_LISTENER,
        "internal_listener": {},
        "per_connection_buffer_limit_bytes": settings.gateway.max_body_bytes,
        "filter_chains": [{"filters": [manager]}],
    }


def cluster(settings: Settings, pod: Pod) -> Json:
    """The channel's host: HTTP/2 where it offers it, certificate and name verified, first attempts capped below the rest."""
    channel = settings.channel
    host, port = address(channel)
    first = max(1, int(channel.max_concurrent * channel.moe.expert_load_threshold))
    way = {"envoy_internal_address": {"server_listener_name": PROXY}} if channel.proxy else socket(host, port)
    priorities = {"DEFAULT": first, "HIGH": channel.max_concurrent}
    return {
        "name": CHANNEL_LISTENER,
        **({"type": "STATIC"} if channel.proxy else {"cluster_type": dns(all_addresses=False)}),
        "connect_timeout": milliseconds(channel.connect_timeout_ms),
        "circuit_breakers": {
            "thresholds": [threshold(name, requests, channel.max_idle_conns) for name, requests in priorities.items()],
            "per_host_thresholds": [
                {"priority": name, "max_connections": channel.max_idle_conns_per_host} for name in priorities
            ],
        },
        "load_assignment": assignment(CHANNEL_LISTENER, [{"endpoint": {"address": way}}]),
        "typed_extension_protocol_options": protocols(auto_config={"http2_protocol_options": {}}),
        "transport_socket": _tls(host, pod),
    }


def proxy_listener(settings: Settings) -> list[Json]:
    """With `channel.proxy`: the channel's TLS goes through a CONNECT tunnel, which sees the host's name and nothing else."""
    if not settings.channel.proxy:
        return []
    host, port = address(settings.channel)
    tunnel = extension(
        "tunnel", "extensions.filters.network.tcp_proxy.v3.TcpProxy",
        stat_prefix=PROXY,
        cluster=PROXY,
        tunneling_config={"hostname": f"{host}:{port}"},
    )  # fmt: skip
    return [{"name": PROXY, "internal_listener": {}, "filter_chains": [{"filters": [tunnel]}]}]


def proxy_cluster(settings: Settings) -> list[Json]:
    """The egress proxy itself."""
    if not settings.channel.proxy:
        return []
    host, _, port = settings.channel.proxy.rpartition(":")
    return [
        {
            "name": PROXY,
            "cluster_type": dns(all_addresses=True),
            "connect_timeout": milliseconds(settings.channel.connect_timeout_ms),
            "load_assignment": assignment(PROXY, [{"endpoint": {"address": socket(host, int(port))}}]),
        }
    ]


def keys_in_use(settings: Settings) -> list[str]:
    """Outbound keys that requests are paid with: the channel's own first, then those of single clients."""
    own = [settings.channel.key] if settings.channel.key else []
    clients = sorted({key.channel_key for key in settings.keys.keys if key.channel_key})
    return list(dict.fromkeys([*own, *clients]))


def key_file(key_id: str) -> str:
    """Name of the file that says where a key lies."""
    return f"{_filter(key_id)}.yaml"


def key_secret(key_id: str, pod: Pod) -> Json:
    """Where a key lies; the Secret holds the bare value, this names the file only."""
    secret = {"filename": f"{pod.channel}/{key_id}", "watched_directory": {"path": pod.channel}}
    return {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": _filter(key_id),
        "generic_secret": {"secret": secret},
    }


def address(channel: ChannelSettings) -> tuple[str, int]:
    """Host and port of the channel's base URL."""
    return channel.base_url.host or "", channel.base_url.port or 443


def path_prefix(channel: ChannelSettings) -> str:
    """The path of the base URL that stands before `/v1/…`, without a slash at its end."""
    return (channel.base_url.path or "").rstrip("/")


def _filter(key_id: str) -> str:
    return f"channel-key-{key_id}"


def _payers(settings: Settings) -> list[tuple[Json | None, Json]]:
    """Clients with an outbound key of their own, then everyone else with the channel's."""
    special = [key for key in settings.keys.keys if key.channel_key and not key.outbound]
    own = [(limits.client_matcher([key.id]), _switched_on(key.channel_key)) for key in special]
    return [*own, (None, _switched_on(settings.channel.key))]


def _switched_on(key_id: str | None) -> Json:
    if key_id is None:
        return {}
    return {"typed_per_filter_config": {_filter(key_id): typed("config.route.v3.FilterConfig", config={})}}


def _credential(key_id: str, pod: Pod) -> Json:
    """Puts one key into requests whose route switches it on; a request without any leaves without a key and comes back as 502."""
    generic = extension(
        "generic", "extensions.http.injected_credentials.generic.v3.Generic",
        credential={"name": _filter(key_id), "sds_config": from_file(pod.config, key_file(key_id), pod.channel)},
        header="authorization",
        header_value_prefix="Bearer ",
    )  # fmt: skip
    kind = "extensions.filters.http.credential_injector.v3.CredentialInjector"
    return {**extension(_filter(key_id), kind, overwrite=True, credential=generic), "disabled": True}


def _tls(host: str, pod: Pod) -> Json:
    names = [{"san_type": "DNS", "matcher": {"exact": host}}]
    validation = {"trusted_ca": {"filename": pod.trusted_ca}, "match_typed_subject_alt_names": names}
    return extension(
        "tls", "extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        sni=host,
        common_tls_context={
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "validation_context": validation,
        },
    )  # fmt: skip


def _replies() -> Json:
    """Without a key the injector answers 401, which would blame the caller: it becomes 502. A 429 here is our own limit."""
    missing = reply("The gateway has no key for the external channel.", "server_error", "channel_unavailable")
    limited = reply(
        "This gateway's limit towards the external channel is reached.", "rate_limit_error", "channel_limit"
    )
    return {
        "mappers": [
            *_refusals(),
            {"filter": with_status(CHANNEL_LISTENER, 401), "status_code": 502, **missing},
            {"filter": with_status(CHANNEL_LISTENER, 429), **limited},
            *local_replies(CHANNEL_LISTENER)["mappers"],
        ]
    }


def _refusals() -> list[Json]:
    """The gate's own 403 is a quota's 429, or 502 for a key that ended: neither is the caller's lack of rights."""
    used_up = "The day's {} for the external channel are used up; the cluster's models still answer."
    answers: dict[channel_gate.Reason, tuple[int, Json]] = {
        "key-expired": (
            502,
            reply("The gateway's key for the external channel has expired.", "server_error", "channel_unavailable"),
        ),
        "tokens-of-the-day": (429, reply(used_up.format("tokens"), "rate_limit_error", "channel_limit")),
        "spend-of-the-day": (429, reply(used_up.format("funds"), "rate_limit_error", "channel_limit")),
    }
    return [
        {
            "filter": with_details(channel_gate.refusal(reason)),
            "status_code": status,
            "headers_to_add": [response_header(limits.LIMIT_HEADER, reason)],
            **answer,
        }
        for reason, (status, answer) in answers.items()
    ]
