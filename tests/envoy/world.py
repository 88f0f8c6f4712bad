"""A gateway between routers of the cluster and a channel outside."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.simulated.gateway import Gateway, fake_key
from tests.envoy.authority import Authority
from tests.envoy.edge import Edge
from tests.envoy.stacks import ASK, CHAT, stack
from tests.envoy.upstream import Upstream

TWIN = {"alias": "moe-expert-a", "modelName": "MiniMax-M2.5", "inCluster": "chat", "weight": 1.0}
TWIN |= {"maxTokens": 4096, "temperature": 0.7, "chipAffinity": ["ascend"]}


@dataclass
class World:
    """A gateway with routers of `chat` behind it and a channel outside."""

    gateway: Gateway
    router: Upstream
    channel: Upstream
    edge: Edge
    key: str

    def ask(self, model: str = "chat", **more: Any) -> httpx.Response:
        with self.gateway.client() as client:
            return client.post(CHAT, json={**ASK, "model": model, **more})


def build(
    start: Callable[..., Any],
    folder: Path,
    channel: dict[str, Any] | None = None,
    host: str = "localhost",
    keyed: bool = True,
    **groups: Any,
) -> World:
    """A running world; `channel` are settings of the channel, `groups` of the stack; unless `keyed`, its keys aren't there yet."""
    authority = Authority(folder)
    router, outside = start(Upstream("router")), start(Upstream("channel"))
    edge = start(Edge(folder / "edge", outside, authority, host))
    groups.setdefault("channelModels", {"models": [TWIN], "fallback": {"order": ["moe-expert-a"]}})
    settings = stack(channel={"baseUrl": edge.base_url, **(channel or {})}, **groups)
    upstreams = {model.name: router.port for model in settings.models}
    gateway = Gateway(settings, folder / "gateway", upstreams, trusted_ca=authority.file)
    outbound = {key.id: fake_key() for key in settings.keys.keys if key.outbound}
    if keyed:
        gateway.channel.write(outbound)
    return World(start(gateway), router, outside, edge, outbound["out"])
