"""What the commands share: the stack's settings, one-line errors, and results on a terminal."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.logging import RichHandler

from settings.command_line import stack_name, writable
from settings.errors import SettingsError
from settings.settings import Settings
from settings.smoke import Way
from smoke import redact
from smoke.errors import PermanentError, SmokeError
from smoke.redact import REDACTOR
from smoke.report import ProbeResult
from smoke.suite import ROOT

USAGE_ERROR: Final = 2
MARKS: Final = {"pass": "[green]✓[/]", "fail": "[red]✗[/]", "skip": "[dim]-[/]"}

StackOption = Annotated[
    str,
    typer.Option("--stack", "-s", envvar="STACK", callback=stack_name, help="Stack: Pulumi.<stack>.yaml names it."),
]
JsonOption = Annotated[
    Path | None,
    typer.Option("--json", callback=writable, help="Write the result as JSON to this file; - for stdout."),
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", callback=writable, help="Write a self-contained page to this file.")
]

console: Final = Console(stderr=True, highlight=False, soft_wrap=True)


def stack_settings(stack: str, via: Way | None = None, *, as_deployed: bool = False) -> Settings:
    """The settings of a stack's file, with another way in if given; `as_deployed` lets ended keys through. Raises SettingsError."""
    settings = Settings.from_stack_file(ROOT / f"Pulumi.{stack}.yaml", as_deployed=as_deployed)
    if via is None:
        return settings
    return settings.model_copy(update={"smoke": settings.smoke.model_copy(update={"via": via})})


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A user's mistake or an unreachable stack is one line and exit code 2, not a traceback."""
    logging.basicConfig(level=logging.WARNING, handlers=[RichHandler(console=console, show_path=False)])
    redact.install()
    try:
        yield
    except (SettingsError, SmokeError) as error:
        console.print(f"moonstack: {REDACTOR.text(str(error))}", markup=False, style="red")
        raise typer.Exit(USAGE_ERROR) from None
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        reason = (error.strerror or type(error).__name__).lower()
        console.print(f"moonstack: {named}{reason}; give a path that you may use", markup=False, style="red")
        raise typer.Exit(USAGE_ERROR) from None


def read(path: Path, fix: str) -> bytes:
    """A file that the user named. Raises PermanentError with `fix`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise PermanentError(f"{path} can't be read: {(error.strerror or type(error).__name__).lower()}", fix) from None


def write(path: Path | None, text: str) -> None:
    """Text to a file, or to stdout for `-`."""
    if path is None:
        return
    if str(path) == "-":
        typer.echo(text)
        return
    path.write_text(text + "\n")


def say(result: ProbeResult, seconds: float) -> None:
    """One line a probe as it ends; cause and fix below it where it did not pass."""
    figure = "" if result.figure is None else f"  {result.figure:g} {result.unit}"
    limit = "" if result.threshold is None else f" (limit {result.threshold:g})"
    console.print(f"{MARKS[result.verdict]} {result.name}{figure}{limit} [dim]{seconds:.1f} s[/]")
    for label, text in (("cause", result.cause), ("fix", result.fix)):
        if text and result.verdict != "pass":
            console.print(f"    {label}: {text}", markup=False)
