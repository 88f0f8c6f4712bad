"""What a changed stack file will do to the running stack: the file as it is, against the same file of a git revision."""

import subprocess
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.table import Table

from local.errors import LocalError
from local.progress import Progress
from local.workspace import CHECKOUT, stack_config
from settings.command_line import stack_name
from settings.errors import SettingsError
from settings.settings import Settings
from settings.stack_file import own
from settings.upgrade import Step, rollouts, steps, told


def upgrade(
    stack: Annotated[
        str, typer.Option("--stack", "-s", callback=stack_name, help="pre, prod or another Pulumi.<stack>.yaml.")
    ] = "prod",
    since: Annotated[str, typer.Option(help="The git revision that is deployed.")] = "HEAD",
) -> None:
    """Say what a changed stack file rolls, replaces or empties, and whether the pools have room for it; exit code 1 if not."""
    after = _current(stack)
    before = _settings(_text_of(stack, since), f"Pulumi.{stack}.yaml of {since}")
    found = steps(before, after)
    out = Console(highlight=False, soft_wrap=True)
    out.print(_table(found) if found else f"nothing that runs differs from {since}; any change of a model's engines:")
    if not found:
        for model, way in rollouts(after).items():
            out.print(f"  {model}: {told(way)}", markup=False)
    raise typer.Exit(1 if any(step.fails for step in found) else 0)


def announce(stack: str, progress: Progress) -> None:
    """Before a preview: the consequences of what differs from git's HEAD, if there is a git and something does."""
    try:
        found = steps(_settings(_text_of(stack, "HEAD"), "HEAD"), _current(stack))
    except (LocalError, SettingsError):
        return  # the preview itself says what is wrong with the file, and HEAD's may be of another program
    for step in found:
        progress.say(f"  {'FAILS: ' if step.fails else ''}{step.subject} ({step.change}): {step.consequence}")


def _table(found: list[Step]) -> Table:
    table = Table("what", "change", "consequence", box=None)
    for step in found:
        table.add_row(step.subject, step.change, ("FAILS: " if step.fails else "") + step.consequence)
    return table


def _current(stack: str) -> Settings:
    return _settings({"config": stack_config(stack)}, f"Pulumi.{stack}.yaml")


def _text_of(stack: str, since: str) -> object:
    """The stack file of a git revision. Raises LocalError when git has none, or not that revision."""
    name = f"Pulumi.{stack}.yaml"
    try:
        revision = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
        done = _git("show", f"{revision.stdout.strip()}:./{name}")
    except OSError:
        raise LocalError("git is not installed, so the deployed stack file can't be read; install git") from None
    if revision.returncode:
        raise LocalError(f"--since {since}: git knows no such revision; name the commit or tag that is deployed")
    if done.returncode:
        raise LocalError(f"--since {since}: git has no {name} there; name the revision that is deployed")
    try:
        return yaml.safe_load(done.stdout)
    except yaml.YAMLError:
        raise LocalError(f"--since {since}: {name} is no YAML there; name another revision") from None


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False)


def _settings(document: object, source: str) -> Settings:
    config = document.get("config") if isinstance(document, dict) else None
    return Settings.from_mapping(own(config if isinstance(config, dict) else {}), source)
