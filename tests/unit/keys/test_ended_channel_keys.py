"""The value of a channel's key that has ended leaves the gateway's Secret, and a key that was given a new end never does."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from capacity.keys import agent as agent_module
from capacity.keys.agent import KeyAgent
from capacity.keys.config import AgentConfig
from capacity.kube import Access, Kube, KubeError
from components.api_keys import ApiKeys, ApiKeysArgs
from components.key_agent import role
from rules import labels, names
from rules.key_ends import key_ends
from settings.keys import KeySettings
from tests.unit.keys.test_api_keys import fresh, version
from tests.unit.keys.test_key_agent import FakeKube
from tests.unit.pulumi_engine import deploy, plain

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
END = NOW + timedelta(hours=1)
PATH = f"/api/v1/namespaces/moonstack/secrets/{names.CHANNEL_KEYS}"


def outbound(key_id: str = "out", end: datetime | None = END) -> KeySettings:
    return KeySettings(id=key_id, purpose="fallback", owner="gateway", expires=end)


def applied(*keys: KeySettings) -> tuple[dict[str, Any], AgentConfig]:
    """What a deployment of these keys writes: the gateway's Secret, and the agent's configuration as it is mounted."""
    seen: list[AgentConfig] = []

    def program(context):
        made = ApiKeys(
            "keys", ApiKeysArgs(keys=keys, versions=tuple(version(k, fresh()) for k in keys), agent=True), context
        )
        seen.append(made.agent_config)

    found = {one.name: one for one in deploy(program)}[names.CHANNEL_KEYS]
    config = AgentConfig.model_validate_json(seen[0].model_dump_json())
    return {"metadata": plain(found.inputs["metadata"]), "data": dict(plain(found.inputs["data"]))}, config


class Cluster(FakeKube):
    """JSON patches on the gateway's Secret as the API server takes them: all operations or none (RFC 6902)."""

    def __init__(self, secret: dict[str, Any]) -> None:
        super().__init__()
        self.secret = secret
        self.tried = 0

    async def operate(self, path: str, operations: Sequence[Mapping[str, Any]]) -> bool:
        self.tried += 1
        assert path.endswith(f"/secrets/{names.CHANNEL_KEYS}")
        test, remove = operations
        assert (test["op"], remove["op"]) == ("test", "remove")
        annotation = test["path"].removeprefix("/metadata/annotations/").replace("~1", "/")
        said = (self.secret["metadata"].get("annotations") or {}).get(annotation)
        file = remove["path"].removeprefix("/data/")
        if said != test["value"] or file not in self.secret["data"]:
            return False
        del self.secret["data"][file]
        return True


def agent(config: AgentConfig, kube: Any) -> KeyAgent:
    return KeyAgent(config, kube)


async def test_an_ended_key_is_taken_out_at_its_moment_and_the_others_stay():
    secret, config = await asyncio.to_thread(
        applied, outbound(), outbound("later", END + timedelta(days=1)), outbound("open", None)
    )
    kube = Cluster(secret)
    one = agent(config, kube)
    await one.step(END - timedelta(seconds=1))
    assert (set(secret["data"]), kube.tried) == ({"out", "later", "open"}, 0)
    await one.step(END)
    assert set(secret["data"]) == {"later", "open"}
    await one.step(END + timedelta(seconds=5))
    assert kube.tried == 1, "once is enough"
    await one.step(END + timedelta(days=1))
    assert set(secret["data"]) == {"open"}


async def test_an_agent_that_was_away_takes_it_out_as_soon_as_it_is_back():
    secret, config = await asyncio.to_thread(applied, outbound())
    await agent(config, Cluster(secret)).step(END + timedelta(days=3))
    assert secret["data"] == {}


async def test_a_value_that_is_written_again_goes_again_within_a_minute(monkeypatch):
    secret, config = await asyncio.to_thread(applied, outbound())
    assert agent_module.REWRITE_SECONDS <= 60
    one = agent(config, Cluster(secret))
    await one.step(END)
    secret["data"]["out"] = "again"
    monkeypatch.setattr(agent_module, "REWRITE_SECONDS", 0.0)
    await one.step(END + timedelta(seconds=60))
    assert secret["data"] == {}


async def test_a_deployment_that_gives_the_key_a_new_end_is_never_undone_by_an_agent_of_the_old_one():
    _, old = await asyncio.to_thread(applied, outbound())
    secret, new = await asyncio.to_thread(applied, outbound(end=END + timedelta(days=90)))
    for config in (old, new):
        await agent(config, Cluster(secret)).step(END + timedelta(seconds=1))
        assert "out" in secret["data"]


async def test_a_key_that_has_not_begun_is_not_taken_away():
    key = outbound(end=END + timedelta(days=9)).model_copy(update={"not_before": END + timedelta(days=1)})
    secret, config = await asyncio.to_thread(applied, key)
    await agent(config, Cluster(secret)).step(END)
    assert "out" in secret["data"]


def test_ends_are_the_same_text_in_every_zone():
    assert key_ends([("out", END)]) == key_ends([("out", END.astimezone(tz=None)), ("open", None)])
    assert key_ends([("open", None)]) == ""


def test_the_agent_may_change_the_channels_keys_only_where_one_of_them_ends():
    def written(*keys: KeySettings) -> list[str]:
        seen: list[Any] = []
        deploy(lambda context: seen.append(role(AgentConfig.of("llm", keys, []), context)))
        return [n for rule in seen[0]["rules"] if rule["verbs"] == ["patch"] for n in rule["resourceNames"]]

    assert names.CHANNEL_KEYS in written(outbound())
    assert names.CHANNEL_KEYS not in written(outbound(end=None))


def test_without_an_agent_no_end_is_written_for_it():
    def program(context):
        ApiKeys("keys", ApiKeysArgs(keys=(outbound(),), versions=(version(outbound(), fresh()),)), context)

    metadata = plain({one.name: one for one in deploy(program)}[names.CHANNEL_KEYS].inputs["metadata"])
    assert labels.KEY_ENDS not in metadata["annotations"]


@pytest.mark.parametrize(("status", "expected"), [(200, True), (422, False), (404, False)])
async def test_operations_that_do_not_fit_are_told_apart_from_those_that_were_done(status, expected):
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, json={})

    assert await client(answer).operate(PATH, [{"op": "remove", "path": "/data/out"}]) is expected
    assert seen[0].headers["content-type"] == "application/json-patch+json"
    assert "PartialObjectMetadata" in seen[0].headers["accept"], "no value comes back"


async def test_a_refused_operation_is_an_error():
    with pytest.raises(KubeError, match="403"):
        await client(lambda request: httpx.Response(403)).operate(PATH, [])


def client(answer: Any) -> Kube:
    made = Kube(Access("http://kube", False))
    made._http = httpx.AsyncClient(base_url="http://kube", transport=httpx.MockTransport(answer))
    return made
