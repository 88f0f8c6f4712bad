"""`python -m smoke`: proof on a live stack."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from settings.settings import Settings
from settings.smoke import Way
from smoke import suite
from smoke.compare import regressions
from smoke.console import (
    MARKS,
    HtmlOption,
    JsonOption,
    StackOption,
    console,
    one_line_errors,
    say,
    stack_settings,
    write,
)
from smoke.errors import PermanentError
from smoke.page.render import report_page
from smoke.promote import promotable
from smoke.pulse.judge import Targets
from smoke.pulse.result import PulseResult
from smoke.pulse.run import pulse as run_pulse
from smoke.pulse.run import pulse_page, targets_of
from smoke.report import ProbeClass, Report

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _main() -> None:
    """Smoke, pulse, doctor, drills and reports."""


@app.command()
def run(
    stack: StackOption = "dev",
    classes: Annotated[str, typer.Option(help="Comma-separated: safe, paid, disruptive.")] = "safe",
    via: Annotated[Way | None, typer.Option(help="Instead of smoke.via.")] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Run the probes; exit 0 when every one passed, 1 when one failed, 2 when nothing could be tried."""
    with one_line_errors():
        settings = stack_settings(stack, via)
        kinds = _classes(classes)
        earlier = asyncio.run(suite.last_green(settings)) if html else None
        report = asyncio.run(suite.run(settings, stack, kinds, listener=say))
        write(json, report.to_json())
        proves = {probe.name: probe.proves for probe in suite.probes_of(settings, kinds)}
        write(html, report_page(report, proves, earlier) if html else "")
    console.print(
        f"smoke on {stack}: {report.verdict} in {report.seconds:g} s",
        style="green" if report.verdict == "pass" else "red",
    )
    raise typer.Exit(0 if report.verdict == "pass" else 1)


@app.command()
def pulse(
    stack: StackOption = "dev",
    model: Annotated[str | None, typer.Option(help="Model to load; the first one when not given.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Open loop: requests a second at the top, instead of users.")
    ] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Few users, many, few again: three times and the criteria; exit 1 when one is missed."""
    with one_line_errors():
        settings = stack_settings(stack)
        result, targets = asyncio.run(_pulse(settings, stack, model, rate))
        write(json, result.model_dump_json(by_alias=True, indent=2))
        write(html, pulse_page(result, targets) if html else "")
    for name, value in result.times.model_dump().items():
        console.print(f"  {name.replace('_', ' ')}: {'did not happen' if value is None else f'{value:g} s'}")
    for one in result.criteria:
        console.print(f"{MARKS[one.verdict]} {one.name}  {one.figure} {one.unit} (limit {one.threshold:g})")
    console.print(
        f"pulse on {stack}: {result.verdict}; {result.requests} requests, {result.lost} lost, {result.broken} broken"
    )
    raise typer.Exit(0 if result.verdict == "pass" else 1)


async def _pulse(settings: Settings, stack: str, model: str | None, rate: float | None) -> tuple[PulseResult, Targets]:
    names = [one.name for one in settings.models]
    if model not in (None, *names):
        raise PermanentError(f"{model!r} is not a model of {stack}", f"choose one of: {', '.join(names)}")
    async with suite.live_stack(settings, stack) as live:
        return await run_pulse(live, model or names[0], rate), targets_of(live)


@app.command()
def compare(earlier: Path, now: Path) -> None:
    """Compare two JSON reports; exit 1 when something got worse."""
    with one_line_errors():
        found = regressions(*(Report.model_validate_json(path.read_text()) for path in (earlier, now)))
    for one in found:
        console.print(f"✗ {one.probe}: {one.text}", markup=False, style="red")
    console.print(f"{len(found)} regression(s)")
    raise typer.Exit(1 if found else 0)


@app.command()
def promote(
    source: Annotated[str, typer.Option("--from", help="Stack that has proven the release.")],
    target: Annotated[str, typer.Option("--to", help="Stack that would get it.")],
) -> None:
    """Say whether a release may go on: exit 0 with the next command, 1 with what is missing."""
    with one_line_errors():
        settings = [stack_settings(stack) for stack in (source, target)]
        try:
            report = asyncio.run(promotable(settings[0], source, settings[1], target, suite.ROOT))
        except PermanentError as refusal:
            console.print(f"not promoted: {refusal}", markup=False, style="red")
            raise typer.Exit(1) from None
    console.print(f"{source} proved content {report.content} on {report.started:%Y-%m-%d %H:%M} UTC", style="green")
    console.print(f"next: pulumi up -s {target}")


def _classes(text: str) -> list[ProbeClass]:
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    known: tuple[ProbeClass, ...] = ("safe", "paid", "disruptive")
    for part in chosen:
        if part not in known:
            raise typer.BadParameter(
                f"{part!r} is not a class; choose among {', '.join(known)}", param_hint="--classes"
            )
    return [kind for kind in known if kind in chosen]


if __name__ == "__main__":
    app()
