"""`python -m local upgrade`: the stack file as it is, against the same file of a git revision."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from local import upgrade, workspace
from local.cli import app
from local.errors import LocalError
from local.progress import Progress
from local.rehearse.cli import show
from local.rehearse.report import Report
from tests.unit.serving.stacks import stack


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose only commit holds the stack file of stack x."""
    for module in (upgrade, workspace):
        monkeypatch.setattr(module, "CHECKOUT", tmp_path)
    write(tmp_path, stack())
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def write(folder: Path, values: dict[str, Any]) -> None:
    config = {f"moonstack:{key}": value for key, value in values.items()}
    (folder / "Pulumi.x.yaml").write_text(yaml.safe_dump({"config": config}))


def asked(*more: str) -> Result:
    return CliRunner().invoke(app, ["upgrade", "--stack", "x", *more], env={"COLUMNS": "400"})


def test_without_a_change_the_room_for_one_is_told(checkout: Path):
    result = asked()
    assert result.exit_code == 0
    assert "nothing that runs differs from HEAD" in result.stdout
    assert "small: one pod of each role" in result.stdout


def test_new_weights_are_told_before_they_are_applied(checkout: Path, capsys: pytest.CaptureFixture[str]):
    values = stack()
    values["models"][1]["weights"]["revision"] = "f" * 16
    write(checkout, values)
    result = asked()
    assert result.exit_code == 0 and "weights" in result.stdout and "cache starts empty" in result.stdout
    upgrade.announce("x", Progress())
    said = capsys.readouterr()
    assert "small (weights): engines change" in said.out + said.err


def test_a_rollout_without_room_ends_with_exit_code_1(checkout: Path):
    values = stack()
    values["nodePools"][1]["count"] = 1
    for role in ("prefill", "decode"):
        values["models"][1][role]["chips"] = 4
    write(checkout, values)
    result = asked()
    assert result.exit_code == 1 and "FAILS: " in result.stdout and "lacks 1 node of pool gpu" in result.stdout


def test_a_revision_that_git_has_not_is_named(checkout: Path):
    result = asked("--since", "nowhere")
    assert isinstance(result.exception, LocalError)
    assert str(result.exception).startswith("--since nowhere: git knows no such revision")


@pytest.mark.parametrize("since", ["--output=x", "HEAD:", ""])
def test_what_is_no_revision_is_none_whatever_git_makes_of_it(checkout: Path, since: str):
    assert f"--since {since}: git knows no such revision" in str(asked("--since", since).exception)


def test_a_revision_without_the_stack_file_is_told_from_one_that_is_not_there(checkout: Path):
    (checkout / "Pulumi.y.yaml").write_text((checkout / "Pulumi.x.yaml").read_text())
    result = CliRunner().invoke(app, ["upgrade", "--stack", "y"])
    assert "--since HEAD: git has no Pulumi.y.yaml there" in str(result.exception)


def test_a_stack_that_is_not_there_is_answered_with_the_known_ones(checkout: Path):
    result = CliRunner().invoke(app, ["upgrade", "--stack", "nosuch", "--since", "nowhere"])
    assert "there is no Pulumi.nosuch.yaml; stacks: x" in str(result.exception)


def test_room_for_two_sets_is_no_fault_of_a_stack_that_does_not_need_them(checkout: Path):
    values = stack()
    values["nodePools"][1]["count"] = 1
    for role in ("prefill", "decode"):
        values["models"][1][role]["chips"] = 1
    values["models"][1]["prefill"]["replicas"] = 4
    write(checkout, values)
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qam", "y"], cwd=checkout, check=True
    )
    result = asked()
    assert result.exit_code == 0 and "lack" not in result.stdout, result.stdout
    assert (
        "only a change of backend or pools needs old and new sets at once, and 1 node of pool gpu more" in result.stdout
    )


@pytest.mark.parametrize("text", ["config: {moonstack:models: 1}", "config: [", "1"])
def test_a_deployed_file_that_this_program_can_not_read_stops_no_preview(checkout: Path, text: str):
    (checkout / "Pulumi.x.yaml").write_text(text)
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "-a", "-m", "y"], cwd=checkout, check=True, capture_output=True)
    write(checkout, stack())
    upgrade.announce("x", Progress())
    assert "HEAD" in str(asked().exception)


def test_a_checkout_without_git_is_previewed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for module in (upgrade, workspace):
        monkeypatch.setattr(module, "CHECKOUT", tmp_path)
    write(tmp_path, stack())
    upgrade.announce("x", Progress())


def test_a_rehearsal_tells_how_each_models_engines_would_change(capsys: pytest.CaptureFixture[str]):
    show(Report("x", 1.0, 1, 1, False, (), (), rollouts={"small": "one pod after the other"}), Console())
    assert "new engines of small: one pod after the other" in capsys.readouterr().out
