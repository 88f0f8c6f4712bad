"""A thousand broken stack files: each is answered with clear lines or is valid after all; none ends in a traceback."""

import copy
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from settings.errors import SettingsError
from settings.settings import Settings

ROOT = Path(__file__).parents[3]
STACKS = ("dev", "pre", "prod")
MUTATIONS = 1000
ODD: tuple[Any, ...] = (
    None, "", " ", "x" * 300, "ключ", "a\nb", 0, -1, 1, 3.5, 10**12, float("nan"), float("inf"), True, [], {}, [None],
    {"x": 1}, ["a", "a"], "1Gi", "-5", "0", "1e3", "../..", "s3://", "{}", "null", "2020-01-01", 2**70, "\x00",
)  # fmt: skip


@cache
def groups(stack: str) -> dict[str, Any]:
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    return {key.removeprefix("moonstack:"): value for key, value in config.items()}


def mutated(seed: int) -> dict[str, Any]:
    """One to three changes at random places of a stack: a value, a key, a missing part or a doubled one."""
    pick = random.Random(seed)
    values = copy.deepcopy(groups(pick.choice(STACKS)))
    for _ in range(pick.randint(1, 3)):
        _change(values, pick)
    return values


def _change(values: dict[str, Any], pick: random.Random) -> None:
    parent, key = pick.choice(list(_places(values)))
    kind = pick.choice(("replace", "replace", "remove", "rename", "double", "swap"))
    if kind == "replace":
        parent[key] = pick.choice(ODD)
    elif kind == "remove":
        del parent[key]
    elif kind == "rename" and isinstance(parent, dict):
        parent[f"{key}{pick.choice('xs')}"] = parent.pop(key)
    elif kind == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    else:
        other, place = pick.choice(list(_places(values)))
        parent[key] = copy.deepcopy(other[place])


def _places(value: Any):
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])


@pytest.mark.parametrize("block", range(10))
def test_every_mutated_stack_file_is_answered_with_clear_lines(block: int):
    refused = 0
    for seed in range(block * MUTATIONS // 10, (block + 1) * MUTATIONS // 10):
        try:
            Settings.from_mapping(mutated(seed))
        except SettingsError as error:
            refused += 1
            for problem in error.problems:
                line = problem.line()
                assert "\n" not in line and len(line) < 1000, (seed, line)
                assert line.startswith("moonstack:"), (seed, line)
                assert problem.limit and problem.fix, (seed, line)
                assert not any(
                    word in line for word in ("Error", "pydantic", "valid dictionary", "valid tuple", "[str")
                ), (seed, line)
    assert refused > MUTATIONS // 10 * 0.6, "most mutations must be refused, else this test proves little"
