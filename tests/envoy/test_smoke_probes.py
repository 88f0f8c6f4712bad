"""The probes that ask the gateway alone, against the real Envoy: green as it is, red when it is not as declared."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.simulated.gateway import fake_key
from rules.envoy_keys import ClientKey
from settings.key_values.local import LocalKeys
from settings.settings import Settings
from smoke.client import GatewayClient
from smoke.probe import LiveStack
from smoke.probes import authentication, compare, connectivity, fallback, paid, quota, routing
from smoke.report import ProbeResult
from smoke.runner import run_probes
from tests.envoy.stacks import CLIENTS
from tests.envoy.waiting import wait_for
from tests.envoy.world import TWIN, World

SMOKE = {"id": "smoke", "purpose": "smoke", "owner": "smoke"}
LIMITED = {"id": "limited", "purpose": "smoke", "owner": "smoke", "qps": 1}
PROBES = (connectivity, authentication, routing, quota, fallback, paid, compare)


@pytest.fixture
def ready(world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[World, str]:
    return prepared(world, tmp_path, monkeypatch)


def prepared(
    world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **groups: Any
) -> tuple[World, str]:
    """A gateway with a channel, and the smoke key; the other keys are where dev keeps them."""
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("smoke.runner.PAUSES", (0.0, 0.0))
    this = world(keys=(*CLIENTS, SMOKE, LIMITED), **groups)
    values = {name: fake_key() for name in ("client", "other", "smoke", "limited")}
    for name, value in values.items():
        LocalKeys().put(name, "current", value)
    this.gateway.write_keys([ClientKey(name, value) for name, value in values.items()])
    with this.gateway.client(values["smoke"]) as client:
        wait_for(lambda: client.get("/v1/models").status_code == 200)
    return this, values["smoke"]


def probed(this: World, key: str, settings: Settings | None = None) -> dict[str, ProbeResult]:
    """Results by probe name."""
    declared = settings or this.gateway.settings

    async def run() -> tuple[ProbeResult, ...]:
        async with httpx.AsyncClient(base_url=this.gateway.url, timeout=10) as http:
            live = LiveStack(name="test", settings=declared, gateway=GatewayClient(http, key), engines=None)
            probes = [probe for module in PROBES for probe in module.probes(declared)]
            return (await run_probes(probes, live, 60))[0]

    return {result.name: result for result in asyncio.run(run())}


def test_every_probe_of_the_gateway_passes_on_the_real_envoy(ready: tuple[World, str]):
    results = probed(*ready)
    assert {name: result.cause for name, result in results.items() if result.verdict != "pass"} == {}
    assert {"429", "fallback:chat", "key-separation", "alias:moe-expert-a", "compare:chat", "models", "413"} <= set(
        results
    )


def test_a_channel_that_is_down_is_seen_by_the_probes_that_need_it_alone(ready: tuple[World, str]):
    this, key = ready
    this.channel.fault = 503
    failed = {name for name, result in probed(this, key).items() if result.verdict == "fail"}
    assert failed == {"fallback:chat", "alias:moe-expert-a", "compare:chat"}


def test_another_model_at_the_channel_is_seen_by_how_it_counts_the_same_prompt(ready: tuple[World, str]):
    this, key = ready
    this.channel.prompt_tokens = 2 * this.router.prompt_tokens
    failed = {name: result for name, result in probed(this, key).items() if result.verdict == "fail"}
    assert set(failed) == {"compare:chat"}
    assert "is another model than chat" in (failed["compare:chat"].cause or "")


def test_an_alias_that_another_one_stands_in_for_is_seen(
    world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    second = {**TWIN, "alias": "moe-expert-b", "modelName": "Kimi-K2.5", "inCluster": None, "chipAffinity": ["nvidia"]}
    entries = [{**TWIN, "weight": 0.5}, {**second, "weight": 0.5}]
    models = {"models": entries, "fallback": {"order": ["moe-expert-a", "moe-expert-b"]}}
    this, key = prepared(world, tmp_path, monkeypatch, channelModels=models)
    assert {name for name, result in probed(this, key).items() if result.verdict == "fail"} == set()
    this.channel.fault = 503
    results = probed(this, key)
    assert "cluster/chat stood in for alias moe-expert-b" in (results["alias:moe-expert-b"].cause or "")


def test_routers_that_are_down_are_seen_though_the_channel_bridges_them(ready: tuple[World, str]):
    this, key = ready
    this.router.fault = 503
    results = probed(this, key)
    assert results["chat:chat"].verdict == "fail"
    assert "no worker is available" in (results["chat:chat"].cause or "")
    assert results["fallback:chat"].verdict == "pass"


def declared_otherwise(settings: Settings, **update: Any) -> Settings:
    model = settings.models[0].model_copy(update={"name": "Chat"})
    return settings.model_copy(update={"models": (model,), **update})


def test_a_gateway_that_was_not_updated_is_seen(ready: tuple[World, str]):
    this, key = ready
    results = probed(this, key, declared_otherwise(this.gateway.settings))
    assert results["models"].verdict == "fail"
    assert "missing: Chat" in (results["models"].cause or "")
    assert "case, hyphens or version" in (results["chat:Chat"].cause or "")


def test_an_unknown_smoke_key_is_seen_as_401_with_its_cause(ready: tuple[World, str]):
    this, _ = ready
    results = probed(this, fake_key())
    assert "expired or disabled" in (results["chat:chat"].cause or "")
    assert results["401:no-key"].verdict == "pass"
