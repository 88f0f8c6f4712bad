"""The probe `throughput` through the real Envoy: green where a prefix that was seen is not computed again, red where it is."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from smoke.channel.tokens import PrefixCache, prompt_of
from smoke.client import GatewayClient
from smoke.probe import LiveStack
from smoke.probes import throughput
from smoke.report import ProbeResult
from smoke.runner import run_probes
from tests.envoy.stacks import MODEL, stack
from tests.envoy.upstream import Upstream

SPEED = 800
"""Prompt tokens a second: a cold request takes half a second, much longer than all else."""
PREFIX = 400


@dataclass
class Engines(Upstream):
    """Computes prompts at `SPEED`; with `reuse`, only what no earlier prompt began with."""

    reuse: bool = True
    cache: PrefixCache = field(default_factory=PrefixCache)

    async def _serve(self, body: bytes, headers: dict[str, str], send: Any) -> None:
        asked = json.loads(body or b"{}")
        prompt, model, salt = prompt_of(asked), asked.get("model", ""), asked.get("cache_salt", "")
        known = self.cache.known(model, prompt, salt) if self.reuse else 0
        await asyncio.sleep((len(prompt) - known) / SPEED)
        self.cache.add(model, prompt, salt)
        self.prompt_tokens = len(prompt)
        await super()._serve(body, headers, send)


@pytest.mark.parametrize(("reuse", "verdict"), [(True, "pass"), (False, "fail")])
def test_throughput_is_red_where_every_prompt_is_computed_again(make, start, reuse: bool, verdict: str):
    engines = start(Engines("router", reuse=reuse))
    model = {**MODEL, "connector": "mooncake-store"}
    settings = stack(models=(model,), smoke={"via": "port-forward", "prefixTokens": PREFIX})
    gateway = make(settings, {"chat": engines.port})

    async def run() -> tuple[ProbeResult, ...]:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=60) as http:
            live = LiveStack(name="test", settings=settings, gateway=GatewayClient(http, gateway.key), engines=None)
            return (await run_probes(throughput.probes(settings), live, 120))[0]

    (result,) = asyncio.run(run())
    assert (result.name, result.verdict) == ("throughput:chat", verdict), result
    assert verdict == "pass" or "requests a second with the store" in (result.cause or "")
