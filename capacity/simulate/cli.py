"""`simulate`, `lint` and `score` of `python -m capacity`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from capacity.simulate import judge, report
from capacity.simulate.run import replay
from capacity.simulate.scenario import Work, scenarios, with_scalers
from capacity.simulate.score import METHODS
from capacity.simulate.score import score as scored
from capacity.simulate.trace import GENERATED, Trace, TraceError, read
from settings.errors import SettingsError
from settings.settings import Settings

Stack = Annotated[str, typer.Option("--stack", "-s", help="The stack whose rules are tried: Pulumi.<stack>.yaml.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="CSV with columns seconds,requests_per_second.")]
Generate = Annotated[str | None, typer.Option(help=f"A generated load instead: {', '.join(GENERATED)}.")]
Scale = Annotated[float, typer.Option(min=0.0, max=10_000.0, help="Factor for a generated load.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the result to this file.")]


def simulate(
    stack: Stack,
    trace: TraceFile = None,
    generate: Generate = None,
    scale: Scale = 1.0,
    prefill_seconds: Annotated[float, typer.Option(min=0.001, help="Time to first token on an idle engine.")] = 0.5,
    decode_seconds: Annotated[float, typer.Option(min=0.001, help="Time a request stays in a decode batch.")] = 8.0,
    json_file: JsonFile = None,
    svg: Annotated[Path | None, typer.Option(help="Write plots into this folder, one file a target.")] = None,
    strict: Annotated[
        bool, typer.Option(help="Exit 1 when a rule oscillates, never fires or hits its maximum.")
    ] = False,
) -> None:
    """Replay a load against the stack's scaling rules: replicas, queue, TTFT and cost over time."""
    console = Console()
    load, settings = _trace(trace, generate, scale), _settings(stack)
    if not settings.autoscaling.engines.enabled:
        console.print(f"scalers are off in stack {stack}: this is what they would do")
        settings = with_scalers(settings)
    work = Work(prefill_seconds=prefill_seconds, decode_seconds=decode_seconds)
    results = []
    for scenario in scenarios(settings, work):
        course = replay(scenario, load)
        figures = judge.summary(course, settings.autoscaling.engines.ttft_seconds)
        found = judge.findings(course, scenario.hpa.high)
        results.append((course, figures, found))
        report.show(console, course, figures, found)
        if svg is not None:
            _write(svg / f"{course.target}.svg", report.as_svg(course))
    if not results:
        _fail(f"stack {stack} serves no model natively, and Kthena's own scaler is not simulated")
    if json_file is not None:
        _write(json_file, json.dumps(report.as_json(results)))
    if strict and any(found for _, _, found in results):
        raise typer.Exit(1)


def lint(stack: Stack) -> None:
    """Check every scaling rule of the stack against the catalogue of engine metrics. Exit 2 on a problem."""
    settings = _settings(stack)
    Console().print(
        f"{stack}: {len(settings.autoscaling.engines.triggers)} own triggers and the built-in rules are sound"
    )


def score(
    trace: TraceFile = None,
    generate: Generate = None,
    scale: Scale = 1.0,
    ahead: Annotated[int, typer.Option(min=1, help="Minutes ahead.")] = 5,
    margin: Annotated[float, typer.Option(min=0.0, help="Percent on top of the forecast.")] = 20,
    json_file: JsonFile = None,
) -> None:
    """Compare the forecasting methods on a load of several days."""
    scores = scored(_trace(trace, generate, scale), ahead, margin)
    if silent := sorted(METHODS.keys() - {row.method for row in scores}):
        said = f"the load is too short for {', '.join(silent)}: give one of some days"
        Console(stderr=True, highlight=False, soft_wrap=True).print(said, markup=False)
    if not scores:
        raise typer.Exit(2)
    table = Table("method", "mean error", "minutes under", "load lost", "spare")
    for row in scores:
        table.add_row(row.method, f"{row.mean_error:.2f}", f"{row.under:.1%}", f"{row.lost:.2%}", f"{row.spare:.0%}")
    Console().print(table)
    if json_file is not None:
        _write(json_file, json.dumps({"schema": 1, "scores": [asdict(row) for row in scores]}))


def _settings(stack: str) -> Settings:
    try:
        return Settings.from_stack_file(Path(f"Pulumi.{stack}.yaml"))
    except SettingsError as error:
        _fail(str(error))


def _trace(path: Path | None, generate: str | None, scale: float) -> Trace:
    if (path is None) == (generate is None):
        _fail("give either --trace FILE or --generate NAME")
    if path is not None:
        try:
            return read(path)
        except TraceError as error:
            _fail(str(error))
    if generate not in GENERATED:
        _fail(f"--generate {generate}: is no generated load; choose one of: {', '.join(GENERATED)}")
    return GENERATED[generate](scale)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        _fail(f"{path}: cannot be written: {error.strerror}; give another path")


def _fail(message: str) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)
    raise typer.Exit(2)
