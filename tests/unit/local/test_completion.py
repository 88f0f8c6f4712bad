"""Completion in a real bash, as a user's shell asks for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from local.completion import MODULES, command_of, completion

ROOT = Path(__file__).parents[3]
ASK = """_moonstack() { return 1; }
eval "$("$1" -m local.completion)"
while IFS= read -r line; do
  IFS=, read -ra words <<< "$line,"
  COMP_WORDS=("$1" "${words[@]}") COMP_CWORD=${#words[@]} COMPREPLY=()
  _moonstack && echo "${COMPREPLY[*]}"
done
"""
OFFERED = {
    "-m,sm": "smoke",
    "-m,smoke,pu": "pulse",
    "-m,smoke,run,--via,": "endpoint port-forward job",
    "-m,json.tool,x": "",
}


def test_modules_commands_options_and_choices_are_offered():
    """One shell is asked for all, as each new one takes a second."""
    command = ["bash", "-c", ASK, "bash", sys.executable]
    done = subprocess.run(
        command, cwd=ROOT, input="\n".join([*OFFERED, ""]), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert dict(zip(OFFERED, done.stdout.split("\n"), strict=False)) == OFFERED


def test_the_documented_command_prints_what_the_shell_evaluates(capsys: pytest.CaptureFixture[str]):
    completion(None)
    assert "complete -o default -F _moonstack" in capsys.readouterr().out


@pytest.mark.parametrize("module", MODULES)
def test_no_command_offers_typers_own_completion_which_can_not_work_for_a_module(module: str):
    options = {name for option in command_of(module).params for name in option.opts}
    assert "--install-completion" not in options
