"""The measurements' command line: what can't work is refused before anything is measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bench import elasticity, gateway, preview, serving
from bench.__main__ import app
from bench.preview import Cost, generated, judge, judge_pack
from local.workspace import stack_config
from settings.settings import Settings

SUBJECTS = (
    (gateway, "measure"),
    (elasticity, "controller"),
    (elasticity, "forecast"),
    (preview, "measure"),
    (serving, "cache"),
)


@pytest.mark.parametrize("subject", [("gateway", "measure"), ("elasticity", "forecast"), ("serving", "cache")])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, subject: tuple[str, str]
):
    result = CliRunner().invoke(app, [*subject, "--json", str(tmp_path)])
    assert (result.exit_code, "--json" in result.output) == (2, True)


def test_an_unknown_stack_is_one_line():
    result = CliRunner().invoke(app, ["serving", "cache", "--stack", "nowhere"])
    assert (result.exit_code, "no such stack file" in result.output) == (2, True)


def test_a_generated_stack_is_valid_and_grows_with_its_size():
    sizes = [len(Settings.from_mapping(config(size)).models) for size in (500, 1000, 2000)]
    assert sizes == [31, 66, 138]


def test_the_packs_share_is_what_a_preview_costs_more_with_it():
    def cost(cpu_seconds: float, resources: int = 1000) -> Cost:
        return Cost(name="", resources=resources, seconds=1, cpu_seconds=cpu_seconds, mebibytes=1)

    assert list(judge_pack([cost(10)], [cost(9, 500), cost(19)]).values()) == [True]
    assert list(judge_pack([cost(10)], [cost(21)]).values()) == [False]
    assert judge_pack([cost(10)], [cost(9, 500)]) == {}


def test_the_limits_of_a_preview_are_judged_on_its_figures():
    empty, prod = cost("empty", 1, 1.0, 1.0), cost("prod", 100, 5.1, 4.0)
    straight = [cost("g", 500, 9, 5.0), cost("g", 1000, 14, 10.0), cost("g", 2000, 25, 20.0)]
    assert all(judge(empty, prod, straight).values())
    slow, bent = cost("prod", 100, 5.2, 4.0), cost("g", 2000, 46, 32.0)
    verdicts = judge(empty, slow, [*straight[:2], bent])
    assert [kept for kept in verdicts.values()] == [False, False, True, False]


def config(size: int) -> dict[str, Any]:
    plain = {key.removeprefix("moonstack:"): value for key, value in stack_config("prod").items()}
    return plain | {"keys": plain["keys"] | {"source": "placeholder"}} | generated(size)


def cost(name: str, resources: int, seconds: float, cpu_seconds: float) -> Cost:
    return Cost(name=name, resources=resources, seconds=seconds, cpu_seconds=cpu_seconds, mebibytes=300)


def test_without_a_subcommand_every_subject_is_measured_though_each_ends_with_an_exit_code(monkeypatch):
    measured: list[str] = []

    def subject(name: str, code: int) -> Callable[[], None]:
        def run() -> None:
            measured.append(name)
            raise typer.Exit(code)

        return run

    for index, (module, name) in enumerate(SUBJECTS):
        monkeypatch.setattr(module, name, subject(name, index % 2))
    assert CliRunner().invoke(app, []).exit_code == 1
    assert measured == [name for _, name in SUBJECTS]
