"""What the pages name exists: commands and their options, make targets, files, tests, links, requirement ids."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.completion import command_of
from settings.reference import anchor

ROOT = Path(__file__).parents[2]
READMES = (ROOT / "README.md", ROOT / "README.zh.md")
PAGES = (*READMES, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md")))
FOLDERS = "rules|settings|components|policies|smoke|capacity|rotation|local|tests|docs|bench|images|examples|.github"

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def code(text: str) -> list[str]:
    """Lines of code blocks without their comments, and code within lines."""
    lines = [line for block in blocks(text) for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"\s+#.*", "", line) for line in lines] + re.findall(r"`([^`\n]+)`", prose)


def modules(text: str) -> Iterator[tuple[str, list[str]]]:
    """Module and arguments of every `python -m`, in prose as well: runbooks are told in words."""
    for module, rest in re.findall(r"python -m ([\w.]+)([^`\n|#);,]*)", text):
        yield module.rstrip("."), [word for word in rest.replace("[", " ").replace("]", " ").split() if word != "…"]


def fault_of(module: str, arguments: list[str]) -> str | None:
    """Why a command line can't be right, as far as its names tell."""
    if importlib.util.find_spec(f"{module}.__main__") is None:
        return f"python -m {module}: no such module"
    if not (ROOT / module.replace(".", "/")).is_dir():
        return None  # another project's, such as pytest
    command, words = command_of(module), list(arguments)
    while (commands := getattr(command, "commands", None)) and words and not words[0].startswith("-"):
        command = commands.get(words.pop(0).rstrip("."))
        if command is None:
            return f"python -m {module} {' '.join(arguments)}: no such command"
    if command.context_settings.get("ignore_unknown_options"):
        return None
    known = {"--help"} | {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    unknown = [word for word in words if word.startswith("--") and word not in known]
    return f"python -m {module} {' '.join(arguments)}: no option {', '.join(unknown)}" if unknown else None


def make_targets() -> set[str]:
    heads = re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return {target for head in heads for target in head.split()}


def headings(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {anchor(heading.replace("`", "")) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@pages
def test_every_python_command_exists_with_its_options(page: Path):
    assert [fault for command in modules(page.read_text()) if (fault := fault_of(*command))] == []


@pages
def test_every_make_target_exists(page: Path):
    text = page.read_text()
    named = {target for line in code(text) for target in re.findall(r"(?:^|\s)make ([a-z]+)", line)}
    for table in re.findall(r"^\| make \|.*\n(?:\|.*\n)+", text, re.MULTILINE):
        named |= {target for row in table.splitlines()[2:] for target in re.findall(r"`([a-z]+)`", row.split("|")[1])}
    assert named - make_targets() == set()


@pages
def test_every_relative_link_resolves_to_a_file_and_a_heading(page: Path):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (fragment and fragment not in headings(target)):
            broken.append(link)
    assert broken == []


@pages
def test_every_file_named_exists(page: Path):
    """Environments are made by commands, so a fresh checkout has none."""
    found = re.findall(rf"(?<![\w./<-])((?:{FOLDERS})/[\w./-]*\w)", page.read_text())
    named = [name for name in found if not name.endswith(".venv")]
    assert [name for name in named if not (ROOT / name).exists() and not (page.parent / name).exists()] == []


@pages
def test_every_test_named_exists(page: Path):
    source = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)(?=`|…)", page.read_text())
    assert [name for name in named if f"def {name}" not in source] == []


@pages
def test_every_requirement_cited_is_explained(page: Path):
    explained = set(re.findall(r"^\| ([A-D]\d+) \|", (ROOT / "docs" / "requirements.md").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?<![\w/])[A-D]\d{1,2}\b", page.read_text())) - explained == set()


@pages
def test_no_page_names_a_folder_of_somebodys_machine(page: Path):
    assert re.findall(r"(?<![\w.~/])/(?:root|home|work|farm|Users)/\S*", page.read_text()) == []


def test_both_readmes_have_the_same_commands_in_the_same_order():
    english, chinese = ([shlex.split(block, comments=True) for block in blocks(page.read_text())] for page in READMES)
    assert english == chinese


def test_the_index_links_every_page():
    linked = set(re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs" / "README.md").read_text()))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_the_page_of_smoke_names_the_commands_that_take_a_stack_and_write_json():
    page = " ".join((ROOT / "docs" / "smoke.md").read_text().split())
    sentence = re.search(r"[^.]*take `--stack` and write `--json FILE`", page)
    assert sentence
    options = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in command_of("smoke").commands.items()
    }
    both = {name for name, taken in options.items() if {"--stack", "--json"} <= taken}
    assert set(re.findall(r"`(\w+)`", sentence[0])) == both
