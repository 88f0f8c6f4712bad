"""`python -m smoke preflight`."""

import asyncio
import json as to_json

import typer

from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.console import JsonOption, StackOption, console, one_line_errors, stack_settings, write
from smoke.doctor.diagnosis import Finding
from smoke.preflight.checks import judge
from smoke.preflight.checks.placing import ways
from smoke.preflight.gather import gather

COLOURS = {"error": "red", "warning": "yellow", "info": "dim"}


def preflight(stack: StackOption = "dev", json: JsonOption = None) -> None:
    """Say what the cluster lacks for a stack; it only reads. Exit code 1 if `up` would fail or serve badly."""
    with one_line_errors():
        settings = stack_settings(stack)
        findings, placed = asyncio.run(examine(settings))
    failed = any(each.severity == "error" for each in findings)
    for each in findings:
        console.print(f"[{COLOURS[each.severity]}]{each.severity}[/] {each.object}: {each.cause}", highlight=False)
        console.print(f"    fix: {each.fix}", markup=False)
    for model, way in placed.items():
        console.print(f"{model}: placed {way}", highlight=False, markup=False)
    if not findings:
        console.print(f"nothing is missing for stack {stack}")
    document = {
        "schema": 1,
        "stack": stack,
        "verdict": "fail" if failed else "pass",
        "placing": placed,
        "findings": [each.model_dump() for each in findings],
    }
    write(json, to_json.dumps(document, indent=2))
    raise typer.Exit(1 if failed else 0)


async def examine(settings: Settings) -> tuple[list[Finding], dict[str, str]]:
    """What the stack's cluster lacks, and model → how its engines are placed. Raises SmokeError when it can't be asked."""
    inventory = await gather(settings, await Cluster.connect(settings.cluster))
    return judge(settings, inventory), ways(settings, inventory)
