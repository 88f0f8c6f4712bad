"""`simulate`, `lint` and `score` of `python -m capacity`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from capacity.simulate import judge, report
from capacity.simulate.run import replay, step_of
from capacity.simulate.scenario import Work, scenarios, with_scalers
from capacity.simulate.score import METHODS
from capacity.simulate.score import score as scored
from capacity.simulate.trace import GENERATED, LONGEST_REPLAY_SECONDS, Trace, TraceError, read
from settings.command_line import finite, stack_name, writable, writable_folder
from settings.errors import SettingsError
from settings.settings import Settings

Stack = Annotated[
    str,
    typer.Option("--stack", "-s", callback=stack_name, help="The stack whose rules are tried: Pulumi.<stack>.yaml."),
]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="CSV with columns seconds,requests_per_second.")]
Generate = Annotated[str | None, typer.Option(help=f"A generated load instead: {', '.join(GENERATED)}.")]
Scale = Annotated[float, typer.Option(min=0.0, max=10_000.0, callback=finite, help="Factor for a generated load.")]
LONGEST_WORK: Final = 86_400.0
"""Seconds of one request: a day."""
JsonFile = Annotated[
    Path | None, typer.Option("--json", callback=writable, help="Write the result to this file; - for stdout.")
]


def simulate(
    stack: Stack,
    trace: TraceFile = None,
    generate: Generate = None,
    scale: Scale = 1.0,
    prefill_seconds: Annotated[
        float,
        typer.Option(min=0.001, max=LONGEST_WORK, callback=finite, help="Time to first token on an idle engine."),
    ] = 0.5,
    decode_seconds: Annotated[
        float,
        typer.Option(min=0.001, max=LONGEST_WORK, callback=finite, help="Time a request stays in a decode batch."),
    ] = 8.0,
    json_file: JsonFile = None,
    svg: Annotated[
        Path | None, typer.Option(callback=writable_folder, help="Write plots into this folder, one file a target.")
    ] = None,
    strict: Annotated[
        bool, typer.Option(help="Exit 1 when a rule oscillates, never fires or hits its maximum.")
    ] = False,
) -> None:
    """Replay a load against the stack's scaling rules: replicas, queue, TTFT and cost over time."""
    console = Console(stderr=str(json_file) == "-")
    load, settings = _trace(trace, generate, scale), _settings(stack)
    if not settings.autoscaling.engines.enabled:
        console.print(f"scalers are off in stack {stack}: this is what they would do")
        settings = with_scalers(settings)
    _say_if_long(load)
    work = Work(prefill_seconds=prefill_seconds, decode_seconds=decode_seconds)
    results = []
    for scenario in scenarios(settings, work):
        course = replay(scenario, load)
        figures = judge.summary(course, settings.autoscaling.engines.ttft_seconds)
        found = judge.findings(course, scenario.hpa.high)
        results.append((course, figures, found))
        report.show(console, course, figures, found)
        if svg is not None:
            svg.mkdir(exist_ok=True)
            _write(svg / f"{course.target}.svg", report.as_svg(course))
    if not results:
        _fail(f"stack {stack} serves no model natively, and Kthena's own scaler is not simulated")
    if foreign := [model.name for model in settings.models if model.backend == "kthena"]:
        console.print(f"not simulated, as Kthena's own scaler moves them: {', '.join(foreign)}", markup=False)
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
    ahead: Annotated[int, typer.Option(min=1, max=1440, help="Minutes ahead.")] = 5,
    margin: Annotated[
        float, typer.Option(min=0.0, max=1000.0, callback=finite, help="Percent on top of the forecast.")
    ] = 20,
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
    Console(stderr=str(json_file) == "-").print(table)
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


def _say_if_long(load: Trace) -> None:
    """Refuse what would take minutes a target, and say of what takes long how much it is."""
    days = load.seconds / 86400
    if load.seconds > LONGEST_REPLAY_SECONDS:
        limit = LONGEST_REPLAY_SECONDS // 86400
        _fail(f"the load lasts {days:.1f} days and a replay {limit} at most: cut it; `score` takes up to 60 days")
    if days >= 1:
        said = f"replaying {days:.1f} days in steps of {step_of(load):.0f} s, about a second a day for each target"
        Console(stderr=True, highlight=False, soft_wrap=True).print(said, markup=False)


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        typer.echo(text)
        return
    try:
        path.write_text(text)
    except OSError as error:
        _fail(f"{path}: cannot be written: {error.strerror}; give another path")


def _fail(message: str) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)
    raise typer.Exit(2)
