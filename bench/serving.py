"""What the cache is worth on the deployed stack: first tokens cold, shared and on another replica; throughput with and without."""

import asyncio
import json
import statistics
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.output import JsonFile
from settings.settings import Settings
from smoke import suite
from smoke.console import one_line_errors, stack_settings, write
from smoke.probe import Probe
from smoke.probes import prefix, second_replica, throughput
from smoke.report import ProbeResult
from smoke.runner import run_probes

app = typer.Typer(help="Serving on a live stack: needs it deployed.", no_args_is_help=True)
DEADLINE_SECONDS = 1800.0


@app.command()
def cache(
    stack: Annotated[str, typer.Option(help="The deployed stack.")] = "dev",
    rounds: Annotated[int, typer.Option(min=1, help="How often each figure is measured.")] = 3,
    json_file: JsonFile = None,
) -> None:
    """Measure, print medians with their range; exit 1 when a threshold was missed in any round."""
    console = Console(highlight=False)
    with one_line_errors():
        results, evidence = asyncio.run(measure(stack_settings(stack), stack, rounds))
    table = Table("measure", "median", "lowest", "highest", "unit", "limit")
    for name in dict.fromkeys(result.name for result in results):
        table.add_row(*row(name, [result for result in results if result.name == name]))
    console.print(table)
    if json_file:
        document = {"figures": [result.model_dump(by_alias=True) for result in results], "evidence": evidence}
        write(json_file, json.dumps(document, indent=2))
    raise typer.Exit(1 if any(result.verdict == "fail" for result in results) else 0)


async def measure(settings: Settings, stack: str, rounds: int) -> tuple[list[ProbeResult], list[dict[str, Any]]]:
    """Every round's results and evidence. Raises SmokeError when the stack can't be reached."""
    probes: list[Probe] = [
        *prefix.probes(settings),
        *second_replica.probes(settings),
        *throughput.probes(settings),
    ]
    results: list[ProbeResult] = []
    evidence: list[dict[str, Any]] = []
    async with suite.live_stack(settings, stack) as live:
        for _ in range(rounds):
            found, measured = await run_probes(probes, live, DEADLINE_SECONDS)
            results += found
            evidence.append(measured)
    return results, evidence


def row(name: str, results: list[ProbeResult]) -> list[str]:
    """One line of the table."""
    figures = [result.figure for result in results if result.figure is not None]
    if not figures:
        return [name, "-", "-", "-", results[0].cause or "", ""]
    values = (statistics.median(figures), min(figures), max(figures))
    limit = results[0].threshold
    return [name, *(f"{value:.3g}" for value in values), results[0].unit or "", "" if limit is None else f"{limit:g}"]
