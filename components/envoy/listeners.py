"""Envoy's listeners: two for clients, three for operations, and the internal ones."""

from typing import Final

from components.envoy import channel, connection, filters, internal
from components.envoy.clusters import socket
from components.envoy.replies import problem
from components.envoy.schema import Json, Pod, extension, from_file
from settings.settings import Settings

ADMIN_CLUSTER: Final = "admin"
TLS_SECRET: Final = "gateway-certificate"
CERTIFICATE_FILE: Final = f"{TLS_SECRET}.yaml"


def listeners(settings: Settings, pod: Pod) -> list[Json]:
    """All listeners; they stay as they are while models, keys and limits change, since a change would drain them."""
    gateway = settings.gateway
    behind = [channel.listener(settings, pod), *channel.proxy_listener(settings)] if settings.channel.enabled else []
    secured = gateway.tls.source != "none"
    return [
        _public("http", gateway.http_port, settings, pod, tls=secured),
        _public("grpc", gateway.grpc_port, settings, pod, tls=False),
        _operations("health", "0.0.0.0", pod.health_port, [filters.health_check()], []),
        _operations("metrics", "0.0.0.0", pod.metrics_port, [], [_to_admin("GET", "/stats/prometheus")]),
        _operations("drain", "127.0.0.1", pod.drain_port, [], _drain_routes()),
        internal.rename_listener(settings),
        *behind,
    ]


def certificate(pod: Pod) -> Json:
    """Where the gateway's certificate lies; read again when the mounted Secret changes."""
    return {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": TLS_SECRET,
        "tls_certificate": {
            "certificate_chain": {"filename": f"{pod.tls}/tls.crt"},
            "private_key": {"filename": f"{pod.tls}/tls.key"},
            "watched_directory": {"path": pod.tls},
        },
    }


def _public(name: str, port: int, settings: Settings, pod: Pod, tls: bool) -> Json:
    chain: Json = {"filters": [connection.public(settings, pod)]}
    if tls:
        chain["transport_socket"] = extension(
            "tls", "extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            common_tls_context={
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
                "tls_certificate_sds_secret_configs": [
                    {"name": TLS_SECRET, "sds_config": from_file(pod.config, CERTIFICATE_FILE)}
                ],
            },
        )  # fmt: skip
    return {
        "name": name,
        "address": socket("0.0.0.0", port),
        "per_connection_buffer_limit_bytes": max(settings.gateway.max_body_bytes, settings.gateway.max_answer_bytes),
        "filter_chains": [chain],
    }


def _operations(name: str, host: str, port: int, http_filters: list[Json], routes: list[Json]) -> Json:
    nothing = {"match": {"prefix": "/"}, **problem(404, "Unknown request URL.", "unknown_url")}
    manager = connection.operations(name, http_filters, [*routes, nothing])
    return {"name": name, "address": socket(host, port), "filter_chains": [{"filters": [manager]}]}


def _drain_routes() -> list[Json]:
    query = [{"name": "filter", "string_match": {"exact": "^http.gateway.downstream_rq_active$"}}]
    active = _to_admin("GET", "/stats")
    active["match"]["query_parameters"] = query
    return [_to_admin("POST", "/healthcheck/fail"), active]


def _to_admin(method: str, path: str) -> Json:
    headers = [{"name": ":method", "string_match": {"exact": method}}]
    return {"match": {"path": path, "headers": headers}, "route": {"cluster": ADMIN_CLUSTER, "timeout": "10s"}}
