"""Where Pulumi runs, and that nothing secret reaches a tracked file."""

import json
from pathlib import Path

import pytest
import yaml

from local import workspace
from local.errors import LocalError


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path / "state"))
    monkeypatch.delenv(workspace.BACKEND_VARIABLE, raising=False)


def test_dev_keeps_backend_passphrase_and_home_in_the_state_directory(tmp_path: Path):
    here = workspace.workspace("dev")
    assert here.folder.is_relative_to(tmp_path)
    assert str(tmp_path) in here.environment[workspace.BACKEND_VARIABLE]
    assert here.environment["PULUMI_CONFIG_PASSPHRASE_FILE"].startswith(str(tmp_path))
    assert here.environment["PULUMI_HOME"].startswith(str(tmp_path))


def test_every_stack_runs_the_policy_pack():
    assert workspace.workspace("dev").environment["PULUMI_OPTION_POLICY_PACK"].endswith("policies/pack")


def test_a_stack_without_a_backend_is_refused_with_the_variable_to_set():
    with pytest.raises(LocalError, match="PULUMI_BACKEND_URL is not set"):
        workspace.workspace("prod")


def test_a_secret_is_written_once_and_for_its_owner_alone(tmp_path: Path):
    path = tmp_path / "keys" / "one"
    workspace.write_secret_once(path, "first")
    workspace.write_secret_once(path, "second")
    assert path.read_text() == "first"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_secret_of_an_interrupted_run_is_written_again(tmp_path: Path):
    path = tmp_path / "one"
    path.touch()
    workspace.write_secret_once(path, "value")
    assert path.read_text() == "value"


def test_the_salt_survives_and_everything_else_follows_the_tracked_file(tmp_path: Path):
    here = workspace.Workspace("dev", tmp_path)
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"encryptionsalt": "v1:x", "config": {"a:b": 1}}))
    workspace._write_project(here, {"config": {"a:b": 2}})
    written = yaml.safe_load((tmp_path / "Pulumi.dev.yaml").read_text())
    assert written == {"encryptionsalt": "v1:x", "config": {"a:b": 2}}
    assert yaml.safe_load((tmp_path / "Pulumi.yaml").read_text())["main"] == str(workspace.CHECKOUT)


@pytest.mark.parametrize(
    ("severities", "shown"), [(("error", "info#err"), "first"), (("info#err", "info"), "first"), (("info",), "exit 3")]
)
def test_a_preview_that_failed_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, severities: tuple[str, ...], shown: str
):
    said = [{"severity": one, "message": name} for one, name in zip(severities, ("first", "second"), strict=False)]
    (tmp_path / "out.json").write_text(json.dumps({"diagnostics": said}))
    (tmp_path / "pulumi").write_text(f"#!/bin/sh\ncat {tmp_path}/out.json\nexit 3\n")
    (tmp_path / "pulumi").chmod(0o755)
    monkeypatch.setattr("local.tools.path", lambda name: tmp_path / name)
    with pytest.raises(LocalError, match=f"pulumi preview: {shown}$"):
        workspace.Workspace("dev", tmp_path).preview()


@pytest.mark.parametrize("text", ["config: [", "config: [a]", "config: {x: " + "9" * 5000 + "}"])
def test_a_stack_file_that_cannot_be_used_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setattr(workspace, "CHECKOUT", tmp_path)
    (tmp_path / "Pulumi.x.yaml").write_text(text)
    with pytest.raises(LocalError, match=r"Pulumi\.x\.yaml: .*(correct|write)"):
        workspace.stack_config("x")


def test_an_unknown_stack_names_those_that_exist():
    with pytest.raises(LocalError, match=r"there is no Pulumi\.nowhere\.yaml; stacks: .*dev"):
        workspace.stack_config("nowhere")


def test_an_empty_backend_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(workspace.BACKEND_VARIABLE, "")
    assert not workspace.has_backend()
    with pytest.raises(LocalError, match="PULUMI_BACKEND_URL is not set"):
        workspace.workspace("prod")
    monkeypatch.setenv(workspace.BACKEND_VARIABLE, "s3://x")
    assert workspace.workspace("prod").stack == "prod"
