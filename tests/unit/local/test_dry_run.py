"""`make up` checks the machine before it changes anything, and with DRY_RUN=1 changes nothing at all."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from local import cli, dev, prerequisites
from local.errors import LocalError


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MOONSTACK_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("command", ["deploy", "up"])
def test_a_dry_run_lists_what_would_be_done_and_does_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prerequisites, "check", lambda _: None)
    monkeypatch.setattr(dev, "up", lambda: pytest.fail("it deployed"))
    result = CliRunner().invoke(cli.app, [command], env={"DRY_RUN": "1"})
    assert result.exit_code == 0, result.output
    for line in ("Debian packages to install:", "Tools to build:", "network namespace", "To listen:", "To keep there:"):
        assert line in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_lacks_something_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(_: object) -> None:
        raise LocalError("no memory cgroup")

    monkeypatch.setattr(prerequisites, "check", refuse)
    monkeypatch.setattr(dev, "build", lambda _: pytest.fail("it built"))
    with pytest.raises(LocalError, match="no memory cgroup"):
        dev.up()
    assert list(tmp_path.iterdir()) == []
