"""`config.toml` (A3) and `settings.json` (A4): the same settings as Envoy's configuration, in the form that services read."""

import json
from typing import Any, Final

import tomli_w

from settings.settings import Settings

CONFIG_TOML: Final = "config.toml"
SETTINGS_JSON: Final = "settings.json"


def service_files(settings: Settings) -> dict[str, str]:
    """Both files by name. Of the channel's key they hold the name of its variable alone (A2)."""
    return {
        CONFIG_TOML: tomli_w.dumps(config_toml(settings)),
        SETTINGS_JSON: json.dumps(settings_json(settings), indent=2) + "\n",
    }


def config_toml(settings: Settings) -> dict[str, Any]:
    """A3's tables and keys."""
    gateway, channel, scaling = settings.gateway, settings.channel, settings.autoscaling.gateway
    return {
        "server": {
            "grpc_port": gateway.grpc_port,
            "http_port": gateway.http_port,
            "max_concurrent_streams": gateway.max_concurrent_streams,
            "stream_timeout_seconds": gateway.stream_timeout_seconds,
        },
        "channel": {
            "base_url": base_url(settings),
            "api_key_env": channel.api_key_env,
            "connect_timeout_ms": channel.connect_timeout_ms,
            "read_timeout_ms": channel.read_timeout_ms,
            "max_idle_conns": channel.max_idle_conns,
            "max_idle_conns_per_host": channel.max_idle_conns_per_host,
            "retry": {
                "max_attempts": channel.retry.max_attempts,
                "backoff_base_ms": channel.retry.backoff_base_ms,
                "backoff_max_ms": channel.retry.backoff_max_ms,
                "retry_on_status": list(channel.retry.retry_on_status),
            },
            "ratelimit": {"qps_per_pod": channel.ratelimit.qps_per_pod, "burst": channel.ratelimit.burst},
        },
        "moe": {
            "routing_strategy": channel.moe.routing_strategy,
            "max_experts_per_request": channel.moe.max_experts_per_request,
            "expert_load_threshold": channel.moe.expert_load_threshold,
        },
        "chip": {
            "preference": list(channel.chip.preference),
            "health_check_interval_seconds": channel.chip.health_check_interval_seconds,
        },
        "autoscaler": {
            "min_replicas": scaling.min_replicas,
            "max_replicas": scaling.max_replicas,
            "scale_out_threshold": scaling.scale_out_threshold,
            "scale_in_threshold": scaling.scale_in_threshold,
            "predict_window_minutes": scaling.predict_window_minutes,
        },
    }


def settings_json(settings: Settings) -> dict[str, Any]:
    """A4's document."""
    group = settings.channel_models
    base = base_url(settings)
    return {
        "channel_version": group.channel_version,
        "provider": settings.channel.provider,
        "endpoints": {"chat": f"{base}/v1/chat/completions", "models": f"{base}/v1/models"},
        "models": [
            {
                "alias": model.alias,
                "model_name": model.model_name,
                "max_tokens": model.max_tokens,
                "temperature": model.temperature,
                "weight": model.weight,
                "chip_affinity": list(model.chip_affinity),
            }
            for model in group.models
        ],
        "fallback": {"enabled": group.fallback.enabled, "order": list(group.fallback.order)},
        "observability": {
            "record_token_usage": group.observability.record_token_usage,
            "record_latency_per_model": group.observability.record_latency_per_model,
            "export_interval_seconds": group.observability.export_interval_seconds,
        },
    }


def base_url(settings: Settings) -> str:
    """The channel's base URL without a slash at its end."""
    return str(settings.channel.base_url).rstrip("/")
