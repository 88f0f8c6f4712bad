"""Stack configurations for the gateway's tests."""

from typing import Any

from settings.settings import Settings

MODEL: dict[str, Any] = {
    "name": "chat",
    "weights": {"source": "development", "location": "dev-wide", "revision": "local", "size": "400Mi"},
    "engine": {"build": "cpu", "dtype": "float32"},
    "prefill": {"pool": "ascend", "replicas": 1, "chips": 8},
    "decode": {"pool": "ascend", "replicas": 1, "chips": 4},
    "longestRequestSeconds": 5,
}
CLIENTS = (
    {"id": "client", "purpose": "client", "owner": "test"},
    {"id": "other", "purpose": "client", "owner": "test"},
)
OUTBOUND = {"id": "out", "purpose": "fallback", "owner": "gateway"}


def stack(
    gateway: dict[str, Any] | None = None,
    channel: dict[str, Any] | None = None,
    models: tuple[dict[str, Any], ...] = (MODEL,),
    keys: tuple[dict[str, Any], ...] = CLIENTS,
    **groups: Any,
) -> Settings:
    """A small stack; `channel` switches the channel on."""
    return Settings.from_mapping(
        {
            "environment": "dev",
            "cluster": {"namespace": "test", "identifier": "test", "kubeconfig": "local"},
            "nodePools": [
                {
                    "name": "ascend",
                    "chip": "ascend-910b",
                    "driverStack": "mindcluster",
                    "arch": "amd64",
                    "chipsPerNode": 64,
                }
            ],
            "models": list(models),
            "gateway": {"replicas": 1, "tls": {"source": "none"}} | (gateway or {}),
            "channel": {"enabled": True, "key": "out"} | channel if channel is not None else {"enabled": False},
            "keys": {"source": "local", "keys": [*keys, *([OUTBOUND] if channel is not None else [])]},
            "autoscaling": {"gateway": {"enabled": False}, "engines": {"enabled": False}},
            "smoke": {"via": "port-forward"},
            **groups,
        }
    )
