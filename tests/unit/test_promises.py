"""docs/promises.md holds what the README promises: in its words, with a command that is run here or a test that pytest collects."""

import importlib
import io
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
EACH_RUN = "each run"


@dataclass(frozen=True, slots=True)
class Promise:
    """A row: the README's words, the command that shows it, and what tests it."""

    words: str
    command: str
    test: str


def plain(text: str) -> str:
    """Text without emphasis, links and line breaks."""
    return " ".join(re.sub(r"\]\([^)]*\)|[*`\[\]]", "", text).split())


def promises() -> list[Promise]:
    rows = re.findall(r"^\| (.+) \| `(.+)` \| (.+) \|$", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)
    return [Promise(*row) for row in rows]


def readme() -> str:
    return (ROOT / "README.md").read_text()


def commands_of_the_readme() -> set[str]:
    """The commands in its code blocks, and the make targets in its table."""
    blocks = "\n".join(re.findall(r"^```\n(.*?)^```", readme(), re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^(?:\w+=\S+ )*((?:make|pulumi|python -m) .*?)(?:\s+#.*)?$", blocks, re.MULTILINE)
    table = re.findall(r"^\| make \|.*\n(?:\|.*\n)+", readme(), re.MULTILINE)
    targets = [target for row in table[0].splitlines()[2:] for target in re.findall(r"`(\w+)`", row.split("|")[1])]
    return {*lines, *(f"make {target}" for target in targets)}


def bare(command: str) -> list[str]:
    """A command's words without variables, options and their values."""
    words = [word for word in shlex.split(command) if "=" not in word]
    return words[: next((n for n, word in enumerate(words) if re.match(r"--?\w", word) and word != "-m"), None)]


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise.words[:40])
def test_each_promise_is_in_the_readmes_own_words(promise: Promise):
    assert plain(promise.words) in plain(readme())


def test_every_command_and_every_point_of_the_readme_is_on_the_page():
    shown = [bare(promise.command) for promise in promises()]
    assert [command for command in sorted(commands_of_the_readme()) if bare(command) not in shown] == []
    points = [plain(point) for point in re.findall(r"^- ((?:.+\n(?:  .+\n)*))", readme(), re.MULTILINE)]
    assert len(points) >= 5
    words = [plain(promise.words) for promise in promises()]
    assert [point for point in points if not any(point.startswith(each) for each in words)] == []


@pytest.mark.parametrize("promise", [p for p in promises() if p.test == EACH_RUN], ids=lambda promise: promise.command)
def test_a_command_that_needs_no_cluster_is_run(promise: Promise, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    _, _, module, *arguments = shlex.split(promise.command)
    done = CliRunner().invoke(importlib.import_module(f"{module}.__main__").app, arguments)
    assert done.exit_code == 0, done.output
    assert done.output


class Collected:
    """A plugin of pytest that keeps the names of what was collected, without parameters."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = {item.nodeid.partition("[")[0] for item in session.items}


def test_every_test_named_is_collected():
    named = {promise.test for promise in promises() if promise.test != EACH_RUN}
    found = Collected()
    with redirect_stdout(io.StringIO()) as said:
        code = pytest.main(
            ["--collect-only", "-q", f"--rootdir={ROOT}", *(f"{ROOT}/{test}" for test in named)], [found]
        )
    assert code == 0, said.getvalue()
    assert found.names == named


def test_make_lint_calls_each_of_its_tools():
    done = subprocess.run(["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert all(f"/{tool} " in done.stdout for tool in ("ruff", "basedpyright", "lint-imports"))


def test_plain_pulumi_is_given_backend_passphrase_and_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    from local import dev
    from local.cli import app

    monkeypatch.setattr(dev, "prepare_engine", lambda progress: None)
    done = CliRunner().invoke(app, ["env", "--stack", "dev"])
    assert done.exit_code == 0, done.output
    assert all(f"{name}=" in done.output for name in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE_FILE", "PATH"))


def shown_by_make(*arguments: str) -> str:
    """What make would run. The environment's own commands are left out."""
    command = ["make", "-n", "-o", ".venv/ready", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout


def test_make_env_makes_what_the_readme_activates():
    command = ["make", "-n", "-B", "env"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert ".ci/environment" in done.stdout
    assert "-m venv .venv" in (ROOT / ".ci" / "environment").read_text()


@pytest.mark.parametrize(("target", "variable", "option"), [("render", "OUT", "--out"), ("rotate", "ID", "--id")])
def test_make_passes_an_option_only_with_its_value(target: str, variable: str, option: str):
    assert option not in shown_by_make(target, "STACK=prod")
    assert f"{option} x" in shown_by_make(target, "STACK=prod", f"{variable}=x")


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_what_the_readme_names_of_prod_is_in_prods_file(name: str):
    text = (ROOT / name).read_text()
    stack = yaml.safe_load((ROOT / "Pulumi.prod.yaml").read_text())
    keys = stack["config"]["moonstack:keys"]
    assert re.findall(r"--secrets-provider='?([^\s']+)", text) == [stack["secretsprovider"]]
    ids = re.findall(r"moonstack:keyValue-([\w-]+)", text)
    assert ids and set(ids) <= {key["id"] for key in keys["keys"]}
    assert f"keys.source: {keys['source']}" in text
