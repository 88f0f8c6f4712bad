"""Envoy's start: where the rest is read from, the admin socket, and how many connections are taken."""

from typing import Final

from components.envoy.listeners import ADMIN_CLUSTER
from components.envoy.schema import Json, Pod, extension, from_file, seconds
from settings.settings import Settings

ANY_SECRET: Final = "any"
"""Stands for every key while a configuration is checked."""
NODE: Final = {"id": "gateway", "cluster": "moonstack"}


def dynamic(settings: Settings, pod: Pod) -> Json:
    """The bootstrap of a pod: listeners and clusters come from the mounted configuration."""
    return {
        **_common(settings, pod),
        "dynamic_resources": {
            "lds_config": from_file(pod.config, "listeners.yaml"),
            "cds_config": from_file(pod.config, "clusters.yaml"),
        },
    }


def static(settings: Settings, pod: Pod, listeners: list[Json], clusters: list[Json]) -> Json:
    """Everything in one file, for `envoy --mode validate`: in that mode Envoy does not open files that are read later."""
    return {
        **_common(settings, pod),
        "static_resources": {
            "listeners": listeners,
            "clusters": clusters,
            "secrets": [{"name": ANY_SECRET, "generic_secret": {"secret": {"inline_string": "none"}}}],
        },
    }


def _common(settings: Settings, pod: Pod) -> Json:
    return {
        "node": NODE,
        "stats_flush_interval": seconds(settings.channel_models.observability.export_interval_seconds),
        "admin": {"address": {"pipe": {"path": pod.admin, "mode": 0o600}}},
        "bootstrap_extensions": [
            extension("envoy.bootstrap.internal_listener", "extensions.bootstrap.internal_listener.v3.InternalListener")
        ],
        "overload_manager": {
            "resource_monitors": [
                extension(
                    "envoy.resource_monitors.global_downstream_max_connections",
                    "extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                    max_active_downstream_connections=settings.gateway.limits.connections,
                )
            ]
        },
    }


def admin_cluster(pod: Pod) -> Json:
    """The admin socket as an upstream of the metrics and drain listeners."""
    return {
        "name": ADMIN_CLUSTER,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": ADMIN_CLUSTER,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": pod.admin}}}}]}],
        },
    }
