"""The key agent: the list follows the clock and the tokens of the day, and a restart forgets nothing."""

import asyncio
import base64
import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from capacity.keys import agent as agent_module
from capacity.keys.agent import KeyAgent
from capacity.keys.config import AgentConfig, AgentKey
from capacity.keys.usage import Usage, token_counts
from capacity.kube import KubeError
from rules import channel_gate, names
from rules.channel_panels import Price
from rules.envoy_keys import FILE, client_keys
from rules.fingerprint import fingerprint
from rules.key_use import last_use

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
VALUES = {name: "sk-" + secrets.token_hex(24) for name in ("key-app-old", "key-app-new", "key-other")}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def gateway(number: int, began: datetime = NOW) -> dict[str, Any]:
    status = {"podIP": f"10.0.0.{number}", "startTime": began.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"metadata": {"name": f"g-{number}", "uid": f"u-{number}"}, "status": status}


class FakeKube:
    """Objects by path, merge patches on data and annotations, and a log of what was read and written."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {
            "secrets/" + name: {"data": {"value": encoded(value)}} for name, value in VALUES.items()
        }
        self.objects["secrets/" + names.CLIENT_KEYS] = {"data": {}}
        self.objects["configmaps/key-agent"] = {}
        self.objects["configmaps/" + names.CHANNEL_GATE] = {}
        self.pods: list[dict[str, Any]] = [gateway(1)]
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

    async def operate(self, path: str, operations: Any) -> bool:
        """Nothing is there that could be taken away."""
        return False

    def listed(self) -> dict[str, bool]:
        text = base64.b64decode(self.objects["secrets/" + names.CLIENT_KEYS]["data"][FILE]).decode()
        return {entry.value: entry.exhausted for entry in client_keys(text)}

    def closed(self) -> dict[str, str]:
        """Reason by client, as the gateway's gate says it."""
        text = self.objects["configmaps/" + names.CHANNEL_GATE]["data"][channel_gate.FILE]
        policies = json.loads(text)["resources"][0]["typed_config"]["rules"]["policies"]
        return {
            principal["header"]["string_match"]["exact"]: reason
            for reason, policy in policies.items()
            for principal in policy["principals"]
        }

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
    """What the gateways' metrics pages say: `text`, or what stands under an address."""
    said = {"text": ""}

    async def fetch(host, port, path):
        assert (port, path) == (9102, "/stats/prometheus")
        return said.get(host, said["text"])

    monkeypatch.setattr(agent_module, "fetch", fetch)
    return said


def agent(kube: FakeKube, **app: Any) -> KeyAgent:
    keys = (
        AgentKey(id="app", secrets=("key-app-old", "key-app-new"), **app),
        AgentKey(id="other", secrets=("key-other",)),
    )
    client: Any = kube
    return KeyAgent(AgentConfig(namespace="llm", keys=keys), client)


def tokens(prompt: int, completion: int, client: str = "app", served_by: str = "cluster/m") -> str:
    tags = f'model="m",client="{client}",served_by="{served_by}"'
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
    assert json.loads(kube.objects["configmaps/key-agent"]["data"]["usage.json"])["used"] == {"app": 70}
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
    usage.note("a", {"app": 10}, started_today=True)
    usage.note("b", {"app": 5}, started_today=True)
    usage.forget({"b"})
    usage.note("b", {"app": 7}, started_today=True)
    assert usage.used == {"app": 17}
    assert set(usage.seen) == {"b"}


def test_what_a_pod_counted_on_other_days_is_not_this_days():
    usage = Usage(NOW.date())
    usage.note("old", {"app": 1_000_000}, started_today=False)
    usage.note("old", {"app": 1_000_007, "new": 500}, started_today=False)
    assert usage.used == {"app": 7, "new": 0}


def test_the_exhausted_mark_and_other_metrics_do_not_confuse_the_count():
    text = tokens(1, 2, "app!exhausted") + tokens(3, 4) + 'envoy_moonstack_requests{client="app"} 9\n# HELP x\n'
    assert [(count.client, count.value) for count in token_counts(text)] == [("app", one) for one in (1, 2, 3, 4)]


def test_numbers_of_every_form_are_read():
    page = 'envoy_moonstack_prompt_tokens{client="a",served_by="channel/zai/GLM-5"} 1.5e+07\n'
    (count,) = token_counts(page)
    assert count == ("a", "channel/zai/GLM-5", "prompt", 15_000_000)


OUT: dict[str, Any] = {"id": "out", "outbound": True}
PRICES = (Price("GLM-5", 2, 8),)


def billed(kube: FakeKube, client: dict[str, Any] | None = None, **out: Any) -> KeyAgent:
    keys = (
        AgentKey(id="app", secrets=("key-app-new",), pays_with="out", **(client or {})),
        AgentKey(id="other", secrets=("key-other",), pays_with="out"),
        AgentKey(**OUT, **out),
    )
    link: Any = kube
    return KeyAgent(AgentConfig(namespace="llm", keys=keys, prices=PRICES), link)


async def test_an_outbound_key_that_ended_or_has_not_begun_closes_the_channel_for_all_who_pay_with_it(kube):
    one = billed(kube, not_before=NOW, expires=NOW + timedelta(hours=1))
    expected = {"app": "key-expired", "other": "key-expired"}
    for moment, closed in (
        (NOW - timedelta(seconds=1), expected),
        (NOW, {}),
        (NOW + timedelta(hours=1), expected),
    ):
        await one.step(moment)
        assert kube.closed() == closed
        assert set(kube.listed()) == {VALUES["key-app-new"], VALUES["key-other"]}, "the cluster stays open for them"


async def test_an_outbound_keys_tokens_count_only_at_the_channel_and_over_all_pods(kube, page):
    one = billed(kube, tokens_per_day=100)
    kube.pods.append(gateway(2))
    page["10.0.0.1"] = tokens(50, 500) + tokens(40, 9, served_by="channel/GLM-5")
    page["10.0.0.2"] = tokens(30, 20, "other", served_by="channel/GLM-5")
    await one.step(NOW)
    assert kube.closed() == {}, "99 of 100"
    page["10.0.0.2"] = tokens(30, 21, "other", served_by="channel/GLM-5")
    await one.step(NOW)
    assert kube.closed() == {"app": "tokens-of-the-day", "other": "tokens-of-the-day"}
    await one.step(NOW + timedelta(days=1))
    assert kube.closed() == {}, "a new day begins at zero"


async def test_money_is_tokens_times_price_and_its_cap_outlives_a_restart(kube, page):
    page["text"] = tokens(400_000, 25_000, served_by="channel/GLM-5")  # 0.80 + 0.20 yuan
    await billed(kube, spend_per_day=1.01).step(NOW)
    assert kube.closed() == {}
    used = json.loads(kube.objects["configmaps/key-agent"]["data"]["usage.json"])["used"]
    assert used == pytest.approx({"out:yuan": 1.0})
    page["text"] = tokens(400_000, 26_250, served_by="channel/GLM-5")
    await billed(kube, spend_per_day=1.01).step(NOW)
    assert kube.closed() == {"app": "spend-of-the-day", "other": "spend-of-the-day"}
    page["text"] = ""
    kube.pods = [gateway(3)]
    await billed(kube, spend_per_day=1.01).step(NOW + timedelta(minutes=1))
    assert kube.closed() == {"app": "spend-of-the-day", "other": "spend-of-the-day"}, "pods go, their bill stays"


async def test_a_clients_own_spend_closes_the_channel_for_it_alone(kube, page):
    page["text"] = tokens(500_000, 0, served_by="channel/GLM-5") + tokens(9**9, 0, "other", served_by="channel/GLM-5")
    await billed(kube, {"spend_per_day": 1.0}).step(NOW)
    assert kube.closed() == {"app": "spend-of-the-day"}


def presented(**counts: int) -> str:
    """Metrics of the versions of key app."""
    values = {"old": VALUES["key-app-old"], "new": VALUES["key-app-new"]}
    return "".join(
        f'envoy_moonstack_key_requests{{client="app",version="{fingerprint(values[name])[:8]}"}} {count}\n'
        for name, count in counts.items()
    )


async def test_the_last_use_of_each_version_is_told_while_two_are_accepted(kube, page):
    def moment(name: str) -> datetime | None:
        return last_use(kube.objects["configmaps/key-agent"]["data"], "app", VALUES[name])

    one = agent(kube)
    page["text"] = presented(old=7, new=1)
    await one.step(NOW)
    assert (moment("key-app-old"), moment("key-app-new")) == (None, None), "a first reading tells nothing"
    page["text"] = presented(old=8, new=1)
    await one.step(NOW + timedelta(minutes=1))
    page["text"] = presented(old=8, new=2)
    await one.step(NOW + timedelta(minutes=9))
    assert moment("key-app-old") == NOW + timedelta(minutes=1)
    assert moment("key-app-new") == NOW + timedelta(minutes=9)
    await agent(kube).step(NOW + timedelta(minutes=20))
    assert moment("key-app-old") == NOW + timedelta(minutes=1), "a restart of the agent is no use"


async def test_a_version_that_a_pod_counts_for_the_first_time_was_used(kube, page):
    one = agent(kube)
    await one.step(NOW)
    page["text"] = presented(old=1)
    await one.step(NOW + timedelta(minutes=3))
    data = kube.objects["configmaps/key-agent"]["data"]
    assert last_use(data, "app", VALUES["key-app-old"]) == NOW + timedelta(minutes=3)


async def test_a_changed_gate_is_written_and_pods_are_nudged_and_an_equal_one_is_not(kube, page):
    one = billed(kube, tokens_per_day=100)
    await one.step(NOW)
    before = dict(kube.pods[0]["metadata"]["annotations"])
    kube.calls.clear()
    await one.step(NOW)
    assert kube.writes() == []
    page["text"] = tokens(100, 0, served_by="channel/GLM-5")
    await one.step(NOW)
    assert "configmaps/" + names.CHANNEL_GATE in kube.writes()
    assert kube.pods[0]["metadata"]["annotations"] != before


async def test_a_hanging_gateway_keeps_no_other_from_being_counted(kube, monkeypatch):
    hanging = asyncio.Event()

    async def fetch(host, port, path):
        if host == "10.0.0.1":
            hanging.set()
            raise TimeoutError
        await hanging.wait()
        return tokens(100, 0, served_by="channel/GLM-5")

    monkeypatch.setattr(agent_module, "fetch", fetch)
    kube.pods = [gateway(2), gateway(1)]
    await asyncio.wait_for(billed(kube, tokens_per_day=100).step(NOW), 10)
    assert kube.closed()


@pytest.mark.parametrize("pods", [1, 4])
async def test_the_overshoot_is_what_is_used_between_two_readings(kube, page, pods):
    """The bound of docs/gateway.md: what all pods serve until the gate is shut."""
    rate, interval, quota = 700, 5, 10_000
    one = billed(kube, tokens_per_day=quota)
    kube.pods = [gateway(number) for number in range(1, pods + 1)]
    used = 0
    for second in range(0, 200, interval):
        used = second * rate
        page["text"] = tokens(used, 0, served_by="channel/GLM-5")
        await one.step(NOW + timedelta(seconds=second))
        if kube.closed():
            break
    assert quota <= used * pods < quota + rate * interval * pods
