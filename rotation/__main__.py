"""`python -m rotation`: give a key a new version, and keep keys.lock.json."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from rotation.cluster import LiveCluster
from rotation.locking import lock_versions
from rotation.run import Rotation, RotationError
from rotation.stores import store_of
from rules import key_value
from rules.key_ends import way_out
from settings.command_line import finite, stack_name
from settings.errors import SettingsError
from settings.key_values import Versions
from settings.keys import KeySettings
from settings.settings import Settings

PREFIX: Final = "sk-ms-"
_BYTES: Final = 32
_MOST_HOURS: Final = 24 * 366
"""A year: an old version that stays for longer is no rotation."""
app = typer.Typer(help=__doc__, pretty_exceptions_enable=False, add_completion=False, invoke_without_command=True)
console = Console(stderr=True, soft_wrap=True, highlight=False)
StackOption = Annotated[str, typer.Option("--stack", callback=stack_name, help="The stack whose keys they are.")]


@app.callback()
def rotate(
    context: typer.Context,
    stack: Annotated[str, typer.Option("--stack", callback=stack_name, help="The stack whose key it is.")] = "dev",
    key_id: Annotated[str | None, typer.Option("--id", help="The key to rotate.")] = None,
    overlap_hours: Annotated[
        float,
        typer.Option(min=0, max=_MOST_HOURS, callback=finite, help="How long the old version must be unused."),
    ] = 24,
    force: Annotated[
        bool, typer.Option("--force", help="Drop the old version as soon as the new one is proven.")
    ] = False,
    finish: Annotated[bool, typer.Option("--finish", help="Only finish a rotation that was cut short.")] = False,
) -> None:
    """Rotate a key: new version, both accepted, every gateway proven, old one dropped. Run again, it resumes.

    The new value of an outbound key is read from stdin; an inbound one is generated.
    """
    if context.invoked_subcommand:
        return
    with _one_line_errors():
        key = _key(_settings(stack, as_deployed=True), stack, key_id)
        settings = _settings(stack)
        pulumi = _pulumi(stack)
        rotation = Rotation(
            key,
            store_of(settings, pulumi),
            LiveCluster(settings, pulumi),
            fresh=lambda: _outbound_value() if key.outbound else PREFIX + secrets.token_urlsafe(_BYTES),
            say=lambda line: console.print(f"{key.id}: {line}", markup=False),
            lock=lambda versions: _lock(settings, {key.id: versions}),
            overlap=timedelta(hours=overlap_hours),
            force=force,
            finish_only=finish,
        )
        rotation.run()


@app.command()
def lock(stack: StackOption) -> None:
    """Write the fingerprints of a stack's keys into keys.lock.json, to be committed."""
    with _one_line_errors():
        settings = _settings(stack)
        found = store_of(settings, _pulumi(stack)).read([key.id for key in settings.keys.keys])
        _lock(settings, found)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """A user's mistake is one line and exit 2, never a traceback."""
    try:
        yield
    except (RotationError, SettingsError) as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(2) from None


def _lock(settings: Settings, found: Mapping[str, Versions]) -> None:
    if lock_versions(settings, found):
        console.print("keys.lock.json changed: commit it", markup=False)


def _settings(stack: str, *, as_deployed: bool = False) -> Settings:
    return Settings.from_stack_file(Path(f"Pulumi.{stack}.yaml"), as_deployed=as_deployed)


def _key(settings: Settings, stack: str, key_id: str | None) -> KeySettings:
    """The key to rotate. Raises RotationError for one that isn't declared, and for one whose next version would have ended."""
    found = next((key for key in settings.keys.keys if key.id == key_id), None)
    if found is None:
        known = ", ".join(key.id for key in settings.keys.keys) or "none"
        raise RotationError(f"--id {key_id}: no such key; declared: {known}")
    if found.has_ended(datetime.now(UTC)):
        raise RotationError(f"key {found.id} has expired; {way_out(stack, found.id, outbound=found.outbound)}")
    return found


def _pulumi(stack: str) -> Sequence[str]:
    return (sys.executable, "-m", "local", "pulumi", "--stack", stack)


def _outbound_value() -> str:
    if sys.stdin.isatty():
        console.print("Paste the new key, then press Enter (it is not shown in any log):")
    value = sys.stdin.readline().strip()
    if fault := key_value.fault(value):
        raise RotationError(f"the new key {fault}")
    return value


if __name__ == "__main__":
    app()
