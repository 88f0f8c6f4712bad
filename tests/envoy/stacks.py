"""Stack configurations for the gateway's tests."""

from typing import Any

from settings.settings import Settings

CHAT = "/v1/chat/completions"
ASK: dict[str, Any] = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
MODEL: dict[str, Any] = {
    "name": "chat",
    "weights": {"source": "development", "location": "dev-wide", "revision": "local", "size": "400Mi"},
    "engine": {"build": "cpu", "dtype": "float32", "blockSize": 32},
    "prefill": {"pool": "ascend", "replicas": 1, "chips": 8},
    "decode": {"pool": "ascend", "replicas": 1, "chips": 4},
    "longestRequestSeconds": 5,
}
POOL: dict[str, Any] = {"name": "ascend", "chip": "ascend-910b", "driverStack": "mindcluster", "arch": "amd64"}
POOL |= {"chipsPerNode": 64, "count": 4}
CLIENTS = (
    {"id": "client", "purpose": "client", "owner": "test"},
    {"id": "other", "purpose": "client", "owner": "test"},
)
OUTBOUND = {"id": "out", "purpose": "fallback", "owner": "gateway"}


def stack_values(
    gateway: dict[str, Any] | None = None,
    channel: dict[str, Any] | None = None,
    models: tuple[dict[str, Any], ...] = (MODEL,),
    keys: tuple[dict[str, Any], ...] = CLIENTS,
    channel_off: dict[str, Any] | None = None,
    **groups: Any,
) -> dict[str, Any]:
    """A small stack's configuration; `channel` switches the channel on, `channel_off` are its settings while it is off."""
    return {
        "environment": "dev",
        "cluster": {"namespace": "test", "identifier": "test", "kubeconfig": "local"},
        "nodePools": [POOL],
        "models": list(models),
        "gateway": {"replicas": 1, "tls": {"source": "none"}} | (gateway or {}),
        "channel": {"enabled": True, "key": "out"} | channel
        if channel is not None
        else {"enabled": False, **(channel_off or {})},
        "keys": {"source": "local", "keys": [*keys, *([OUTBOUND] if channel is not None else [])]},
        "autoscaling": {"gateway": {"enabled": False}, "engines": {"enabled": False}},
        "smoke": {"via": "port-forward"},
        **groups,
    }


def stack(**groups: Any) -> Settings:
    """A small stack; `groups` as `stack_values` takes them."""
    return Settings.from_mapping(stack_values(**groups))
