"""Completion in a real bash, as a user's shell asks for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from local.completion import MODULES, command_of

ROOT = Path(__file__).parents[3]
ASK = """eval "$("$1" -m local completion)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_moonstack && printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words: str) -> list[str]:
    """What bash offers for the last word."""
    command = ["bash", "-c", ASK, "bash", sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-m", "sm"), ["smoke"]),
        (("-m", "smoke", "pu"), ["pulse"]),
        (("-m", "smoke", "run", "--via", ""), ["endpoint", "port-forward", "job"]),
        (("-m", "json.tool", "x"), []),
    ],
)
def test_modules_commands_options_and_choices_are_offered(words: tuple[str, ...], expected: list[str]):
    assert offered(*words) == expected


@pytest.mark.parametrize("module", MODULES)
def test_no_command_offers_typers_own_completion_which_can_not_work_for_a_module(module: str):
    options = {name for option in command_of(module).params for name in option.opts}
    assert "--install-completion" not in options
