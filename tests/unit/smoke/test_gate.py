"""The gate's message, and the reports that it reads and leaves."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from rules import names
from smoke import archive, gate
from smoke.cluster import Reply
from smoke.errors import TemporaryError
from smoke.report import ProbeResult, Report
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


@pytest.mark.parametrize(("verdict", "passed"), [("pass", True), ("fail", False)])
async def test_the_gate_passes_exactly_when_smoke_does(monkeypatch: pytest.MonkeyPatch, verdict: str, passed: bool):
    async def run(settings: Any, stack: str, *, release: str) -> Report:
        assert release == "r1"
        return report(verdict)

    async def connect(settings: Any) -> Any:
        raise TemporaryError("no cluster", "start it")

    monkeypatch.setattr("smoke.suite.run", run)
    monkeypatch.setattr("smoke.cluster.Cluster.connect", connect)
    proof = await gate.prove(dev_settings(), "dev", "r1")
    assert proof.passed is passed
