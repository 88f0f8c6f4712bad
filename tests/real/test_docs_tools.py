"""Commands of Pulumi and kubectl that the pages name: the real programs know each with its options."""

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

from local import tools
from smoke.doctor.catalogue import CATALOGUE
from tests.unit.test_docs import PAGES, code

NAMES = re.compile(r"(?<![\w/.-])((?:pulumi|kubectl) -?[^`|&;<>#()\n]*)")
PLAIN = {"pulumi": ("--stack", "-s", "--non-interactive"), "kubectl": ("-n", "--kubeconfig")}
"""Options of every command, which `--help` of each lists elsewhere."""
WITH_VALUE = ("-n", "-s", "--stack", "-l", "-L", "-o", "-c")


def named() -> set[tuple[str, ...]]:
    """Program and words of each command, in code on pages and in the doctor's fixes."""
    texts = [line for page in PAGES for line in code(page.read_text())]
    texts += [text for one in CATALOGUE for text in (one.look, one.fix)]
    found = set()
    for text in texts:
        for command in NAMES.findall(text):
            words = tuple(word for word in _split(command) if "…" not in word and not word.startswith("──"))
            if len(words) > 1:
                found.add(words)
    return found


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an apostrophe of the sentence around it
        return command.split()


@cache
def help_of(program: Path, *words: str) -> str | None:
    """What `--help` says of a command; None where there is no such command."""
    done = subprocess.run([str(program), *words, "--help"], capture_output=True, text=True, timeout=30)
    listed = re.search(r"^Aliases:\n +(.*)$", done.stdout, re.M)
    aliases = listed[1].split(", ") if listed else []
    usage = rf"^\s*(?:usage:\s*)?{program.name} {re.escape(' '.join(words))}\b"
    called = re.search(usage, done.stdout, re.MULTILINE | re.IGNORECASE)
    known = called or (words and {" ".join([program.name, *words]), words[-1]} & set(aliases))
    return done.stdout if done.returncode == 0 and known else None


def fault_of(program: Path, words: tuple[str, ...]) -> str | None:
    """Why a command line can't be right."""
    rest, path = list(words), []
    options = []
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            options.append(word.split("=")[0])
            if word in WITH_VALUE and rest:
                rest.pop(0)
        elif re.fullmatch(r"[a-z-]+", word) and len(path) < 2 and help_of(program, *path, word):
            path.append(word)
        elif not path:
            return f"{program.name} has no command {word}"
    text = help_of(program, *path) or ""
    unknown = [
        option
        for option in options
        if option not in PLAIN[program.name] and not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)
    ]
    return f"{program.name} {' '.join(path)} has no option {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("name", ["pulumi", "kubectl"])
def test_every_command_is_known_to_the_real_program(name: str):
    program = tools.path(name)
    commands = sorted(words[1:] for words in named() if words[0] == name)
    assert len(commands) > 8
    assert [fault for words in commands if (fault := fault_of(program, words))] == []
