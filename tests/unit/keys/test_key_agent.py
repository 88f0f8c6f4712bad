"""The key agent: the list follows the clock and the tokens of the day, and a restart forgets nothing."""

import base64
import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from capacity.keys import agent as agent_module
from capacity.keys.agent import KeyAgent
from capacity.keys.config import AgentConfig, AgentKey
from capacity.keys.usage import Usage, token_counters
from capacity.kube import KubeError
from rules import names
from rules.envoy_keys import FILE, client_keys

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
VALUES = {name: "sk-" + secrets.token_hex(24) for name in ("key-app-old", "key-app-new", "key-other")}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class FakeKube:
    """Objects by path, merge patches on data and annotations, and a log of what was read and written."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {
            "secrets/" + name: {"data": {"value": encoded(value)}} for name, value in VALUES.items()
        }
        self.objects["secrets/" + names.CLIENT_KEYS] = {"data": {}}
        self.objects["configmaps/key-agent"] = {}
        self.pods: list[dict[str, Any]] = [{"metadata": {"name": "g-1", "uid": "u-1"}, "status": {"podIP": "10.0.0.1"}}]
        self.calls: list[tuple[str, str]] = []
        self.down = False

    async def get(self, path: str, params: Any = None) -> Any:
        self._note("get", path)
        return {"items": self.pods} if path.endswith("/pods") else self.objects[self._key(path)]

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        self._note("patch", path)
        if "/pods/" in path:
            self.pods[0]["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        else:
            self.objects[self._key(path)].setdefault("data", {}).update(body["data"])

    def listed(self) -> dict[str, bool]:
        text = base64.b64decode(self.objects["secrets/" + names.CLIENT_KEYS]["data"][FILE]).decode()
        return {entry.value: entry.exhausted for entry in client_keys(text)}

    def writes(self) -> list[str]:
        return [self._key(path) for verb, path in self.calls if verb == "patch"]

    def _note(self, verb: str, path: str) -> None:
        if self.down:
            raise KubeError(0, "away")
        self.calls.append((verb, path))

    def _key(self, path: str) -> str:
        return "/".join(path.split("/")[-2:])


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def page(monkeypatch):
    """What the gateway's metrics page says."""
    said = {"text": ""}

    async def fetch(host, port, path):
        assert (host, port, path) == ("10.0.0.1", 9102, "/stats/prometheus")
        return said["text"]

    monkeypatch.setattr(agent_module, "fetch", fetch)
    return said


def agent(kube: FakeKube, **app: Any) -> KeyAgent:
    keys = (
        AgentKey(id="app", secrets=("key-app-old", "key-app-new"), **app),
        AgentKey(id="other", secrets=("key-other",)),
    )
    client: Any = kube
    return KeyAgent(AgentConfig(namespace="llm", keys=keys), client)


def tokens(prompt: int, completion: int, client: str = "app") -> str:
    tags = f'model="m",client="{client}",target="t"'
    return (
        f"envoy_moonstack_prompt_tokens{{{tags}}} {prompt}\nenvoy_moonstack_completion_tokens{{{tags}}} {completion}\n"
    )


async def test_all_valid_versions_are_listed_and_a_second_step_writes_nothing(kube):
    one = agent(kube)
    await one.step(NOW)
    assert set(kube.listed()) == set(VALUES.values())
    kube.calls.clear()
    await one.step(NOW)
    assert kube.writes() == []


async def test_an_expired_key_leaves_the_list_at_its_moment_and_pods_are_nudged(kube):
    one = agent(kube, expires=NOW + timedelta(seconds=1))
    await one.step(NOW)
    before = kube.pods[0]["metadata"]["annotations"]
    assert VALUES["key-app-old"] in kube.listed()
    first = dict(before)
    await one.step(NOW + timedelta(seconds=1))
    assert set(kube.listed()) == {VALUES["key-other"]}
    assert kube.pods[0]["metadata"]["annotations"] != first


async def test_a_key_enters_the_list_at_its_not_before(kube):
    one = agent(kube, not_before=NOW)
    await one.step(NOW - timedelta(seconds=1))
    assert VALUES["key-app-new"] not in kube.listed()
    await one.step(NOW)
    assert VALUES["key-app-new"] in kube.listed()


async def test_used_up_tokens_mark_all_versions_of_the_key_until_the_next_day(kube, page):
    one = agent(kube, tokens_per_day=100)
    page["text"] = tokens(60, 39)
    await one.step(NOW)
    assert not any(kube.listed().values())
    page["text"] = tokens(60, 40)
    await one.step(NOW)
    assert kube.listed() == {VALUES["key-app-old"]: True, VALUES["key-app-new"]: True, VALUES["key-other"]: False}
    await one.step(NOW + timedelta(days=1))
    assert not any(kube.listed().values()), "a new day begins at zero, counters go on"


async def test_a_restarted_agent_goes_on_counting_and_a_restarted_gateway_counts_whole(kube, page):
    page["text"] = tokens(50, 10)
    await agent(kube, tokens_per_day=100).step(NOW)
    page["text"] = tokens(50, 20)
    await agent(kube, tokens_per_day=100).step(NOW)
    assert json.loads(kube.objects["configmaps/key-agent"]["data"]["usage.json"])["tokens"] == {"app": 70}
    page["text"] = tokens(20, 10)
    await agent(kube, tokens_per_day=100).step(NOW)
    assert kube.listed()[VALUES["key-app-old"]] is True


async def test_an_unreachable_gateway_stops_nothing(kube, monkeypatch):
    async def fetch(host, port, path):
        raise OSError

    monkeypatch.setattr(agent_module, "fetch", fetch)
    await agent(kube, tokens_per_day=100).step(NOW)
    assert set(kube.listed()) == set(VALUES.values())


async def test_an_api_server_that_is_away_changes_nothing_and_is_tried_again(kube):
    one = agent(kube)
    kube.down = True
    with pytest.raises(KubeError):
        await one.step(NOW)
    kube.down = False
    await one.step(NOW)
    assert set(kube.listed()) == set(VALUES.values())


async def test_the_gateways_list_is_never_read_and_written_again_after_a_minute(kube, monkeypatch):
    one = agent(kube)
    await one.step(NOW)
    monkeypatch.setattr(agent_module, "REWRITE_SECONDS", 0.0)
    await one.step(NOW)
    assert kube.writes().count("secrets/" + names.CLIENT_KEYS) == 2
    assert not [path for verb, path in kube.calls if verb == "get" and path.endswith(names.CLIENT_KEYS)]


async def test_each_version_is_read_once(kube):
    one = agent(kube)
    await one.step(NOW)
    await one.step(NOW)
    reads = [path for verb, path in kube.calls if verb == "get" and "/secrets/key-" in path]
    assert len(reads) == 3


def test_a_pods_tokens_stay_counted_when_it_goes():
    usage = Usage(NOW.date())
    usage.note("a", {"app": 10})
    usage.note("b", {"app": 5})
    usage.forget({"b"})
    usage.note("b", {"app": 7})
    assert usage.tokens == {"app": 17}
    assert set(usage.seen) == {"b"}


def test_the_exhausted_mark_and_other_metrics_do_not_confuse_the_count():
    text = tokens(1, 2, "app!exhausted") + tokens(3, 4) + 'envoy_moonstack_requests{client="app"} 9\n# HELP x\n'
    assert token_counters(text) == {"app": 10}
