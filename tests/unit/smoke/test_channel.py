"""The channel for tests does what its plan says."""

import json
import secrets
from pathlib import Path

import httpx
import pytest

from smoke.channel.app import Channel
from smoke.channel.plan import ChannelPlan, Fault, KeyPlan
from smoke.channel.serve import serve
from smoke.client import GatewayClient, chat_body
from smoke.commands.channel import generated, read_plan
from smoke.errors import PermanentError, TemporaryError


@pytest.fixture
def value() -> str:
    return "sk-" + secrets.token_hex(24)


def plan(value: str, **more) -> ChannelPlan:
    key = KeyPlan.model_validate({"id": "a", "value": value, **more.pop("key", {})})
    return ChannelPlan(models=("m",), keys=(key,), **more)


async def statuses(channel: Channel, value: str, count: int) -> list[int]:
    async with serve(channel) as url, httpx.AsyncClient(base_url=url) as http:
        client = GatewayClient(http, value)
        return [
            (await client.send("POST", "/v1/chat/completions", json=chat_body("m", "x", max_tokens=1))).status
            for _ in range(count)
        ]


async def test_a_quota_of_two_requests_ends_with_429(value: str):
    assert await statuses(Channel(plan(value, key={"requests": 2})), value, 4) == [200, 200, 429, 429]


async def test_a_rate_of_two_a_second_has_a_burst_of_two(value: str):
    assert await statuses(Channel(plan(value, key={"qps": 2})), value, 4) == [200, 200, 429, 429]


async def test_faults_hit_an_even_share(value: str):
    channel = Channel(plan(value, faults=(Fault(kind="status", status=503, share=0.25),)))
    assert await statuses(channel, value, 8) == [200, 200, 200, 503] * 2


async def test_a_hanging_channel_is_a_temporary_error(value: str):
    channel = Channel(plan(value, faults=(Fault(kind="hang"),)))
    async with serve(channel) as url, httpx.AsyncClient(base_url=url, timeout=0.2) as http:
        with pytest.raises(TemporaryError, match="did not answer in time"):
            await GatewayClient(http, value).chat("m", "x")


async def test_a_prefix_that_was_seen_comes_sooner_unless_salted(value: str):
    channel = Channel(plan(value, prefill_tokens_per_second=1000))
    prompt = " ".join(f"w{i}" for i in range(320))
    async with serve(channel) as url, httpx.AsyncClient(base_url=url) as http:
        client = GatewayClient(http, value)
        cold, warm = [(await client.stream("m", prompt, max_tokens=2)).first_token_seconds for _ in range(2)]
        salted = (await client.stream("m", prompt, max_tokens=2, cache_salt="other")).first_token_seconds
    assert warm < cold / 3
    assert salted > warm * 3


async def test_the_channel_speaks_tls_and_its_key_is_private(value: str, tmp_path: Path):
    async with serve(Channel(plan(value)), tls=tmp_path) as url:
        assert url.startswith("https://")
        assert (tmp_path / "tls.key").stat().st_mode & 0o077 == 0


async def test_the_real_engine_may_answer_behind_the_channels_keys(value: str):
    inner_value = "unused"
    inner = Channel(plan(inner_value))
    inner._admit = lambda request: None  # type: ignore[method-assign]
    async with serve(inner) as engine:
        outer = Channel(plan(value, upstream=engine))
        async with serve(outer) as url, httpx.AsyncClient(base_url=url) as http:
            streamed = await GatewayClient(http, value).stream("m", "x", max_tokens=3)
            assert streamed.chunks == 3
            refused = await GatewayClient(http, "wrong").send("POST", "/v1/chat/completions", json={})
            assert refused.status == 401


def test_a_generated_key_is_kept_private_and_reused(tmp_path: Path):
    first = generated(tmp_path / "c", ["m"])
    assert generated(tmp_path / "c", ["m"]) == first
    assert (tmp_path / "c" / "key").stat().st_mode & 0o077 == 0


def test_a_plan_with_a_wrong_field_names_it_and_no_key(tmp_path: Path):
    value = "sk-" + secrets.token_hex(24)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"models": ["m"], "keys": [{"id": "a", "value": value, "qps": 0}]}))
    with pytest.raises(PermanentError) as caught:
        read_plan(path)
    assert "keys.0.qps" in str(caught.value)
    assert value not in str(caught.value)
