"""A small stack on loopback for each test."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from settings.key_values.local import LocalKeys
from smoke.channel.plan import ChannelPlan, KeyPlan
from smoke.channel.serve import serve
from smoke.channel.tokens import PrefixCache
from smoke.client import GatewayClient
from smoke.engines import Engines
from smoke.probe import LiveStack
from tests.unit.smoke.fakes import MODEL, FakeCluster, FakeEngine, FakeStack, dev_settings


@pytest.fixture
def key() -> str:
    return "sk-" + secrets.token_hex(24)


@pytest.fixture
def cluster() -> FakeCluster:
    store = PrefixCache()
    return FakeCluster({name: FakeEngine(store) for name in ("prefill-a", "prefill-b", "decode-a")})


@pytest.fixture
def stack(key: str, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    limited = "sk-" + secrets.token_hex(24)
    LocalKeys().put("dev-limit", "current", limited)
    keys = (
        KeyPlan(id="dev-smoke", value=SecretStr(key)),
        KeyPlan(id="dev-limit", value=SecretStr(limited), qps=1),
    )
    return FakeStack(ChannelPlan(models=(MODEL,), keys=keys, prefill_tokens_per_second=1500), cluster)


@pytest.fixture
async def live(stack: FakeStack, key: str, cluster: FakeCluster) -> AsyncIterator[LiveStack]:
    async with serve(stack) as url, httpx.AsyncClient(base_url=url, timeout=5) as http:
        yield LiveStack(
            name="dev",
            settings=dev_settings(),
            gateway=GatewayClient(http, key),
            engines=Engines(cluster),  # type: ignore[arg-type]
        )
