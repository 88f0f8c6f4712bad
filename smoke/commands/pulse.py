"""pulse."""

import asyncio
from typing import Annotated, Final

import typer

from settings.command_line import finite
from settings.settings import Settings
from smoke import suite
from smoke.console import MARKS, HtmlOption, JsonOption, StackOption, console, one_line_errors, stack_settings, write
from smoke.errors import PermanentError
from smoke.keys import refuse_ended_payer
from smoke.pulse import run as pulse_run
from smoke.pulse.judge import Targets
from smoke.pulse.result import PulseResult

MOST_RATE: Final = 10_000.0
"""Requests a second, as many as users at most (`smoke.pulse`)."""


def pulse(
    stack: StackOption = "dev",
    model: Annotated[str | None, typer.Option(help="Model to load; the first one when not given.")] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=MOST_RATE, callback=finite, help="Open loop: requests a second at the top, instead of users."
        ),
    ] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Few users, many, few again: three times and the criteria; exit 1 when one is missed."""
    with one_line_errors():
        result, targets = asyncio.run(_pulse(stack_settings(stack, as_deployed=True), stack, model, rate))
        write(json, result.model_dump_json(by_alias=True, indent=2))
        write(html, pulse_run.pulse_page(result, targets) if html else "")
    for name, value in result.times.model_dump().items():
        console.print(f"  {name.replace('_', ' ')}: {'did not happen' if value is None else f'{value:g} s'}")
    for one in result.criteria:
        console.print(f"{MARKS[one.verdict]} {one.name}  {one.figure} {one.unit} (limit {one.threshold:g})")
    counts = f"{result.requests} requests, {result.lost} lost, {result.broken} broken"
    console.print(f"pulse on {stack}: {result.verdict}; {counts}")
    raise typer.Exit(0 if result.verdict == "pass" else 1)


async def _pulse(settings: Settings, stack: str, model: str | None, rate: float | None) -> tuple[PulseResult, Targets]:
    names = [one.name for one in settings.models]
    if not names:
        raise PermanentError(f"{stack} serves no model in the cluster", "a pulse needs one under moonstack:models")
    if model not in (None, *names):
        raise PermanentError(f"{model!r} is not a model of {stack}", f"choose one of: {', '.join(names)}")
    refuse_ended_payer(settings)
    async with suite.live_stack(settings, stack) as live:
        return await pulse_run.pulse(live, model or names[0], rate), pulse_run.targets_of(live)
