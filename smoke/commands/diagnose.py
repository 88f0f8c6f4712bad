"""doctor and runbooks."""

import asyncio
from json import dumps
from typing import Final

import typer
from rich.markup import escape

from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.console import JsonOption, StackOption, console, one_line_errors, stack_settings, write
from smoke.doctor.catalogue import CATALOGUE, runbooks
from smoke.doctor.diagnosis import Finding, findings
from smoke.doctor.gather import Gatherer
from smoke.redact import REDACTOR

STYLES: Final = {"error": "red", "warning": "yellow", "info": "dim"}


def doctor(stack: StackOption = "dev", json: JsonOption = None) -> None:
    """What is wrong on the live stack, why, and what to do; exit 1 if anything is an error."""
    with one_line_errors():
        found = asyncio.run(examine(stack_settings(stack, as_deployed=True), stack))
        document = {"schema": 1, "findings": [one.model_dump() for one in found]}
        write(json, REDACTOR.text(dumps(document, indent=2)))
    for one in found:
        console.print(f"[{STYLES[one.severity]}]{one.severity}[/] {one.id}  {escape(one.object)}")
        console.print(f"    cause: {REDACTOR.text(one.cause)}\n    fix: {one.fix}", markup=False)
    console.print(f"doctor on {stack}: {len(CATALOGUE)} diagnoses, {len(found)} findings")
    raise typer.Exit(1 if any(one.severity == "error" for one in found) else 0)


async def examine(settings: Settings, stack: str) -> list[Finding]:
    """The findings on a live stack. Raises SmokeError when the API server can't be reached."""
    facts = await Gatherer(settings, await Cluster.connect(settings.cluster), stack).facts()
    return findings(CATALOGUE, facts)


def print_runbooks() -> None:
    """Print docs/runbooks.md, generated from the doctor's catalogue."""
    typer.echo(runbooks())
