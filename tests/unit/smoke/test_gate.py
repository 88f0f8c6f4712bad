"""The gate's message, and the reports that it reads and leaves."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from rules import names
from rules.names import CONFIG_HEADER
from smoke import archive, gate
from smoke.cluster import Reply
from smoke.engines import Engines
from smoke.errors import TemporaryError
from smoke.probe import LiveStack, Outcome, Probe, failed, passed
from smoke.report import ProbeResult, Report
from smoke.settle import find_workers, settle
from tests.unit.smoke.fakes import dev_settings


def report(verdict: str, commit: str | None = "c0ffee") -> Report:
    probe = ProbeResult.model_validate(
        {"name": "chat:dev-wide", "class": "safe", "verdict": verdict, "cause": "no worker", "fix": "look"}
    )
    return Report.model_validate(
        {
            "verdict": verdict,
            "probes": (probe,),
            "stack": "dev",
            "environment": "dev",
            "release": "r1",
            "content": "c1",
            "commit": commit,
            "started": datetime.now(UTC),
            "seconds": 1,
        }
    )


class ConfigMaps:
    """ConfigMaps of a namespace, by server-side apply."""

    namespace = "moonstack-dev"

    def __init__(self, status: int = 200) -> None:
        self.objects: dict[str, Any] = {}
        self.status = status

    def path(self, resource: str, name: str = "") -> str:
        return f"/{resource}/{name}"

    async def call(self, method: str, path: str, *, params: Any, body: Any, kind: str) -> Reply:
        assert (method, kind) == ("PATCH", "application/apply-patch+yaml")
        if self.status == 200:
            self.objects[path] = body
        return Reply(self.status, "{}")

    async def get(self, path: str) -> Any:
        return self.objects.get(path)


async def test_a_green_report_is_kept_twice_and_a_red_one_leaves_the_green_alone():
    cluster: Any = ConfigMaps()
    await archive.keep(cluster, report("pass"))
    await archive.keep(cluster, report("fail", commit="bad"))
    latest, green = await archive.latest(cluster), await archive.latest_green(cluster)
    assert latest and latest.commit == "bad"
    assert green and green.commit == "c0ffee"
    assert set(cluster.objects) == {f"/configmaps/{name}" for name in (names.SMOKE_LATEST, names.SMOKE_GREEN)}


async def test_a_broken_stored_report_counts_as_none():
    cluster: Any = ConfigMaps()
    cluster.objects[f"/configmaps/{names.SMOKE_GREEN}"] = {"data": {"report.json": json.dumps({"schema": 99})}}
    assert await archive.latest_green(cluster) is None


async def test_a_report_that_can_not_be_kept_says_which_right_is_missing():
    with pytest.raises(TemporaryError, match="patch on ConfigMaps"):
        await archive.keep(ConfigMaps(status=403), report("pass"))  # type: ignore[arg-type]


def test_the_message_names_the_failure_the_way_back_and_the_way_to_try_again():
    text = gate.failure(report("fail"), report("pass"))
    assert "chat:dev-wide: no worker; look" in text
    assert "the new version keeps serving" in text
    assert "git checkout c0ffee && pulumi up -s dev" in text


def test_without_a_green_report_the_message_says_where_the_commits_are():
    assert "pulumi stack history -s dev" in gate.failure(report("fail"), None)


class Door:
    """A live stack behind one gateway; counts how often it is opened. `red` fails every probe."""

    def __init__(self, cluster: Any, monkeypatch: pytest.MonkeyPatch, red: bool = False) -> None:
        self.opened = 0
        self.cluster = cluster
        monkeypatch.setattr("smoke.suite.live_stack", self.open)
        monkeypatch.setattr("smoke.suite.probes_of", lambda *_: [Probe(name="p", proves="", check=self.check)])
        self.red = red

    @asynccontextmanager
    async def open(self, settings: Any, stack: str) -> AsyncIterator[LiveStack]:
        self.opened += 1
        gateway: Any = Gateways(["c1"] * 3)
        yield LiveStack(name=stack, settings=settings, gateway=gateway, engines=Engines(self.cluster))

    async def check(self, live: LiveStack) -> Outcome:
        return failed("no worker", "look") if self.red else passed()


@pytest.mark.parametrize("red", [False, True])
async def test_the_gate_passes_exactly_when_smoke_does_and_opens_the_stack_once(
    monkeypatch: pytest.MonkeyPatch, red: bool
):
    cluster: Any = ConfigMaps()
    door = Door(cluster, monkeypatch, red)
    proof = await gate.prove(dev_settings(), "dev", "c1", "r1")
    kept = await archive.latest(cluster)
    assert proof.passed is not red
    assert kept and (kept.release, kept.verdict) == ("r1", "fail" if red else "pass")
    assert door.opened == 1


async def test_the_gate_proves_the_new_set_of_a_model_that_changes_as_a_whole(monkeypatch: pytest.MonkeyPatch):
    cluster: Any = ConfigMaps()
    asked: list[Any] = []

    async def leave(settings: Any, where: Any) -> bool:
        asked.append(where)
        return False

    Door(cluster, monkeypatch)
    monkeypatch.setattr("smoke.gate.leave_old_sets", leave)
    assert (await gate.prove(dev_settings(), "dev", "c1", "r1")).passed
    assert asked == [cluster]


async def test_a_red_gate_names_the_commit_of_the_last_green_report(monkeypatch: pytest.MonkeyPatch):
    cluster: Any = ConfigMaps()
    await archive.keep(cluster, report("pass"))
    Door(cluster, monkeypatch, red=True)
    proof = await gate.prove(dev_settings(), "dev", "c1", "r1")
    assert "p: no worker; look" in proof.text and "git checkout c0ffee" in proof.text


async def test_a_gate_that_can_not_open_the_stack_says_so(monkeypatch: pytest.MonkeyPatch):
    async def unreachable(settings: Any) -> Any:
        raise TemporaryError("no cluster", "start it")

    monkeypatch.setattr("smoke.suite._cluster", unreachable)
    proof = await gate.prove(dev_settings(), "dev", "c1", "r1")
    assert (proof.passed, proof.text) == (False, "smoke could not begin on dev: no cluster; start it")


class Gateways:
    """Pods behind one address: each request meets the next of the given configurations; the last one stays."""

    def __init__(self, served: list[str], chats: list[int] | None = None) -> None:
        self.served = served
        self.chats = chats or [200]
        self.asked = 0
        self.paid: list[Any] = []

    def authorization(self) -> dict[str, str]:
        return {}

    async def send(self, method: str, _: str, headers: dict[str, str] | None = None, json: Any = None) -> Any:
        if method == "POST":
            return SimpleNamespace(status=self.chats.pop(0) if len(self.chats) > 1 else self.chats[0])
        assert headers is not None
        assert headers["Connection"] == "close"
        found = self.served[min(self.asked, len(self.served) - 1)]
        self.asked += 1
        return SimpleNamespace(headers={CONFIG_HEADER: found})


async def test_the_gate_waits_until_no_gateway_serves_the_old_configuration(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("smoke.settle.PAUSE_SECONDS", 0)
    gateways = Gateways(["new", "old", "new", "new", "old", "new", "new", "new"])
    await settle(dev_settings(), gateways, "new")  # type: ignore[arg-type]
    assert gateways.asked == 8


async def test_a_gateway_that_never_takes_the_configuration_up_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("smoke.settle.PAUSE_SECONDS", 0)
    with pytest.raises(TemporaryError, match="still serve another configuration"):
        await settle(dev_settings(), Gateways(["old"]), "new", patience=0)  # type: ignore[arg-type]


async def test_the_gate_waits_until_the_gateway_has_found_routers_that_have_just_become_ready(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("smoke.settle.PAUSE_SECONDS", 0)
    gateways = Gateways(["new"], chats=[503, 503, 200])
    await find_workers(dev_settings(), gateways)  # type: ignore[arg-type]
    assert gateways.chats == [200]


async def test_a_model_that_stays_without_a_server_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("smoke.settle.PAUSE_SECONDS", 0)
    with pytest.raises(TemporaryError, match="no server of dev-wide could take a request"):
        await find_workers(dev_settings(), Gateways(["new"], chats=[503]), patience=0)  # type: ignore[arg-type]
