"""`python -m local render` and `python -m local rehearse`."""

import json as to_json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from local import tools
from local.errors import LocalError
from local.progress import Progress
from local.rehearse.rehearse import rehearse as play
from local.rehearse.render import render as write
from local.rehearse.report import Report
from local.tools.catalogue import ENGINE
from settings.command_line import stack_name
from settings.stack_file import UnreadableError, groups_by_name, read_yaml

Stack = Annotated[
    str, typer.Option("--stack", "-s", callback=stack_name, help="dev, pre, prod or another Pulumi.<stack>.yaml.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(render)
    app.command()(rehearse)


def render(
    stack: Stack = "prod",
    out: Annotated[Path, typer.Option(help="A new folder, or one of an earlier rendering.")] = Path("rendered"),
) -> None:
    """Write every object of a stack as YAML; nothing is applied and no cluster is asked."""
    tools.ensure(ENGINE, Progress())
    written = write(stack, out)
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"{len(written)} objects of {stack} in {out}")


def rehearse(
    stack: Stack = "prod",
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    instead: Annotated[
        Path | None, typer.Option(help="YAML with groups (nodePools, models …) to try in place of the stack's own.")
    ] = None,
) -> None:
    """Apply a stack to simulated nodes of its pools' shape and say where the real scheduler put every pod."""
    tools.ensure(ENGINE, Progress())
    report = play(stack, Progress(), _groups(instead) if instead else None)
    if json:
        sys.stdout.write(to_json.dumps(report.document(), indent=2) + "\n")
    else:
        show(report, Console(highlight=False, soft_wrap=True))
    raise typer.Exit(0 if report.ok else 1)


def _groups(path: Path) -> dict[str, Any]:
    try:
        found = read_yaml(path)
    except FileNotFoundError:
        raise LocalError(f"{path}: no such file; give a YAML file with groups, such as nodePools") from None
    except UnreadableError as error:
        raise LocalError(f"{path}: cannot be read: {error}; correct the file") from None
    if not isinstance(found, dict):
        raise LocalError(f"{path} must hold groups, such as nodePools, at its top")
    try:
        return groups_by_name(found)
    except ValueError as error:
        raise LocalError(f"{path}: {error}") from None


def show(report: Report, out: Console) -> None:
    """The report for people."""
    table = Table(
        "pool", "nodes", "chips", "used", "free", "pods", "more pods that fit, by chips", "yuan an hour", box=None
    )
    for pool in report.pools:
        surge = f"{pool.surge} × {pool.largest_pod}" if pool.largest_pod else ""
        figures = (pool.nodes, pool.chips, pool.used, pool.free, pool.pods, surge, f"{pool.cost_per_hour:,.0f}")
        table.add_row(pool.pool, *map(str, figures))
    out.print(table)
    out.print(
        f"{report.placed} of {report.pods} pods placed in {report.seconds:.0f} s; {report.cost_per_hour:,.0f} yuan an hour"
    )
    if report.expanded:
        out.print("pods of ModelServings were made by the rehearsal: Kthena's controller is not in this cluster")
    for model, way in report.rollouts.items():
        out.print(f"new engines of {model}: {way}", markup=False)
    for pool in report.pools:
        if pool.missing:
            out.print(f"pool {pool.pool}: pods with {pool.missing} chips in all have no node", markup=False)
    for pod in report.unplaced:
        out.print(
            f"  not placed: {pod.pod} ({pod.chips} chips on {pod.pool or 'any node'}): {pod.reason}", markup=False
        )
