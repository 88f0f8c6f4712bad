"""The commands: exit codes, one-line errors, and the JSON that scripts read."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from settings.settings import Settings
from smoke.__main__ import app
from smoke.doctor.diagnosis import Finding
from smoke.drills.drill import DrillResult
from smoke.errors import TemporaryError
from smoke.report import Report
from smoke.suite import ROOT
from tests.unit.smoke.fakes import dev_settings


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def report(verdict: str) -> Report:
    probe = {"name": "chat:m", "class": "safe", "verdict": verdict, "cause": "no worker", "fix": "look"}
    facts = {
        "stack": "dev",
        "environment": "dev",
        "release": "r",
        "content": "c",
        "started": datetime.now(UTC),
        "seconds": 1,
    }
    return Report.model_validate({"verdict": verdict, "probes": [probe], **facts})


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1)])
def test_run_ends_with_the_verdict_and_writes_schema_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdict: str, code: int
):
    async def run(*_: Any, **__: Any) -> Report:
        return report(verdict)

    monkeypatch.setattr("smoke.suite.run", run)
    assert call("run", "--json", str(tmp_path / "r.json")).exit_code == code
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["schema"] == 1
    assert document["probes"][0]["class"] == "safe"


def test_a_run_that_could_not_begin_is_exit_code_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    async def connect(*_: Any) -> Any:
        raise TemporaryError("no cluster", "start it")

    monkeypatch.setattr("smoke.cluster.Cluster.connect", connect)
    assert call("run", "--json", str(tmp_path / "r.json")).exit_code == 2
    assert json.loads((tmp_path / "r.json").read_text())["probes"][0]["name"] == "entrance"


@pytest.mark.parametrize("content", [b'{"a":', b"[]", b"\xff\xfe", b""])
def test_comparing_what_is_no_report_is_one_line_and_exit_code_2(tmp_path: Path, content: bytes):
    path = tmp_path / "r.json"
    path.write_bytes(content)
    result = call("compare", str(path), str(path))
    assert (result.exit_code, "is no report" in result.output) == (2, True)


@pytest.mark.parametrize("name", ["nowhere.json", "."])
@pytest.mark.parametrize("command", [["compare"], ["channel", "folder", "--plan"]])
def test_a_file_that_is_not_there_is_said_in_words_with_the_fix(tmp_path: Path, command: list[str], name: str):
    path = str(tmp_path / name)
    result = call(*command, path, *([path] if command == ["compare"] else []))
    assert result.exit_code == 2
    assert "can't be read: " in result.stderr and "Errno" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_folder_that_can_not_be_made_is_said_in_words(tmp_path: Path):
    (tmp_path / "file").touch()
    result = call("channel", str(tmp_path / "file" / "folder"))
    assert (result.exit_code, "not a directory; give a path" in result.stderr) == (2, True)


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("place", ["", "file/below"])
def test_a_place_that_cannot_be_written_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str, place: str
):
    async def run(*_: Any, **__: Any) -> Report:
        raise AssertionError("it ran")

    monkeypatch.setattr("smoke.suite.run", run)
    (tmp_path / "file").touch()
    result = call("run", option, str(tmp_path / place))
    assert (result.exit_code, option in result.output) == (2, True)
    assert "can't be" in result.output


@pytest.mark.parametrize("arguments", [("run", "--classes", ","), ("drill", "--only", ","), ("pulse", "--rate", "-1")])
def test_a_choice_of_nothing_is_refused_before_the_stack_is_asked(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
):
    async def connect(*_: Any) -> Any:
        raise AssertionError("the stack was asked")

    monkeypatch.setattr("smoke.cluster.Cluster.connect", connect)
    result = call(*arguments)
    assert (result.exit_code, arguments[1] in result.output) == (2, True)


def test_an_unknown_stack_is_one_line_and_exit_code_2():
    result = call("run", "--stack", "nowhere")
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments", [("run", "--classes", "safest"), ("drill", "--only", "earthquake"), ("pulse", "--model", "gpt")]
)
def test_an_unknown_name_is_refused_before_anything_is_tried(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
):
    async def never(*_: Any) -> Any:
        raise AssertionError("the cluster was asked")

    monkeypatch.setattr("smoke.cluster.Cluster.connect", never)
    assert call(*arguments).exit_code == 2


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("warning", 0)])
def test_the_doctor_ends_with_1_for_an_error_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, severity: Any, code: int
):
    async def examine(*_: Any) -> list[Finding]:
        return [Finding(id="x", severity=severity, object="pod/p", cause="c", fix="f")]

    monkeypatch.setattr("smoke.commands.diagnose.examine", examine)
    assert call("doctor", "--json", str(tmp_path / "d.json")).exit_code == code
    document = json.loads((tmp_path / "d.json").read_text())
    assert document["schema"] == 1
    assert set(document["findings"][0]) == {"id", "severity", "object", "cause", "fix"}


def test_a_cluster_that_can_not_be_reached_is_exit_code_2(monkeypatch: pytest.MonkeyPatch):
    async def connect(*_: Any) -> Any:
        raise TemporaryError("no cluster", "start it")

    monkeypatch.setattr("smoke.cluster.Cluster.connect", connect)
    assert call("doctor").exit_code == 2


def test_drills_in_prod_need_to_be_meant(monkeypatch: pytest.MonkeyPatch):
    ran: list[str] = []

    async def drill(settings: Any, stack: str, drills: Any) -> list[DrillResult]:
        ran.append(stack)
        return []

    prod = dev_settings().model_copy(update={"environment": "prod"})
    monkeypatch.setattr("smoke.commands.drill.stack_settings", lambda stack, **_: prod)
    monkeypatch.setattr("smoke.commands.drill._drill", drill)
    assert call("drill", "--stack", "prod").exit_code == 2
    assert ran == []
    assert call("drill", "--stack", "prod", "--in-prod").exit_code == 0
    assert ran == ["prod"]


def test_the_drills_json_has_the_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    async def drill(*_: Any) -> list[DrillResult]:
        counts = {"requests": 9, "lost": 1, "broken": 0, "slow": 2, "seconds": 1, "cause": "1 lost", "carried_by": "x"}
        return [DrillResult.model_validate({"name": "scale-down", "verdict": "fail", **counts})]

    monkeypatch.setattr("smoke.commands.drill._drill", drill)
    assert call("drill", "--json", str(tmp_path / "d.json")).exit_code == 1
    (one,) = json.loads((tmp_path / "d.json").read_text())["drills"]
    assert {"name", "requests", "lost", "broken", "slow", "verdict"} <= set(one)


def test_compare_names_what_got_worse(tmp_path: Path):
    for name, verdict in (("old", "pass"), ("new", "fail")):
        (tmp_path / name).write_text(report(verdict).to_json())
    assert call("compare", str(tmp_path / "old"), str(tmp_path / "new")).exit_code == 1
    assert call("compare", str(tmp_path / "old"), str(tmp_path / "old")).exit_code == 0


@pytest.mark.parametrize(("command", "code"), [("doctor", 0), ("preflight", 2)])
def test_a_stack_whose_key_has_ended_is_examined_but_nothing_is_prepared_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, code: int
):
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    ended = text.replace("{id: dev-client,", '{id: dev-client, expires: "2026-01-01",')
    assert ended != text
    (tmp_path / "Pulumi.dev.yaml").write_text(ended)

    async def examine(settings: Settings, *_: Any) -> list[Finding]:
        assert settings.keys.keys[0].expires
        return []

    monkeypatch.setattr("smoke.console.ROOT", tmp_path)
    monkeypatch.setattr("smoke.commands.diagnose.examine", examine)
    monkeypatch.setattr("smoke.preflight.cli.examine", examine)
    assert call(command).exit_code == code
