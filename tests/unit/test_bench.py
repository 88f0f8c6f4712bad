"""The measurements' command line: what can't work is refused before anything is measured."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.__main__ import app


@pytest.mark.parametrize("subject", [("gateway", "measure"), ("elasticity", "forecast"), ("serving", "cache")])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, subject: tuple[str, str]
):
    result = CliRunner().invoke(app, [*subject, "--json", str(tmp_path)])
    assert (result.exit_code, "--json" in result.output) == (2, True)


def test_an_unknown_stack_is_one_line():
    result = CliRunner().invoke(app, ["serving", "cache", "--stack", "nowhere"])
    assert (result.exit_code, "no such stack file" in result.output) == (2, True)
