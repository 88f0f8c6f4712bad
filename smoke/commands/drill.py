"""drill."""

import asyncio
from json import dumps
from typing import Annotated

import typer

from settings.settings import Settings
from smoke import suite
from smoke.console import MARKS, JsonOption, StackOption, console, one_line_errors, stack_settings, write
from smoke.drills.catalogue import CATALOGUE
from smoke.drills.deployed import refuse_other_than_declared
from smoke.drills.drill import Drill, DrillResult
from smoke.drills.run import run_drills
from smoke.errors import PermanentError
from smoke.keys import refuse_ended_payer
from smoke.redact import REDACTOR


def drill(
    stack: StackOption = "dev",
    only: Annotated[str | None, typer.Option(help="Comma-separated names; all when not given.")] = None,
    in_prod: Annotated[bool, typer.Option("--in-prod", help="Really take things away in prod.")] = False,
    json: JsonOption = None,
) -> None:
    """Take things away under load and count what was lost; exit 1 when a drill lost more than it may."""
    with one_line_errors():
        settings = stack_settings(stack, as_deployed=True)
        if settings.environment == "prod" and not in_prod:
            raise PermanentError(f"{stack} is prod, and drills take things away", "give --in-prod if you mean it")
        results = asyncio.run(_drill(settings, stack, _chosen(only)))
        document = {"schema": 1, "drills": [result.model_dump() for result in results]}
        write(json, REDACTOR.text(dumps(document, indent=2)))
    raise typer.Exit(1 if any(result.verdict == "fail" for result in results) else 0)


async def _drill(settings: Settings, stack: str, drills: list[Drill]) -> list[DrillResult]:
    if not settings.models:
        raise PermanentError(f"{stack} serves no model in the cluster", "a drill needs one under moonstack:models")
    refuse_ended_payer(settings)
    async with suite.live_stack(settings, stack) as live:
        if live.engines is not None:
            await refuse_other_than_declared(settings, stack, live.gateway, live.engines.cluster)
        return await run_drills(live, settings.models[0].name, drills, _say)


def _say(result: DrillResult) -> None:
    counts = f"{result.requests} requests, {result.lost} lost, {result.broken} broken, {result.slow} slow"
    console.print(f"{MARKS[result.verdict]} {result.name}  {counts} [dim]{result.seconds:g} s[/]")
    if result.cause:
        console.print(f"    cause: {REDACTOR.text(result.cause)}", markup=False)
    console.print(f"    carried by: {result.carried_by}", markup=False, style="dim")


def _chosen(only: str | None) -> list[Drill]:
    if only is None:
        return list(CATALOGUE)
    known = {one.name: one for one in CATALOGUE}
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise PermanentError(f"{name!r} is not a drill", f"choose among: {', '.join(known)}")
    if not wanted:
        raise PermanentError("--only names no drill", f"choose among: {', '.join(known)}")
    return [known[name] for name in wanted]
