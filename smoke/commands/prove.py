"""run, compare, promote: reports and what follows from them."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from settings.command_line import stack_name
from settings.smoke import Way
from smoke import suite
from smoke.compare import regressions
from smoke.console import (
    USAGE_ERROR,
    HtmlOption,
    JsonOption,
    StackOption,
    console,
    one_line_errors,
    read,
    say,
    stack_settings,
    write,
)
from smoke.errors import PermanentError
from smoke.page.render import report_page
from smoke.promote import promotable
from smoke.report import ProbeClass, Report

CLASSES: tuple[ProbeClass, ...] = ("safe", "paid", "disruptive")


def run(
    stack: StackOption = "dev",
    classes: Annotated[str, typer.Option(help="Comma-separated: safe, paid, disruptive.")] = "safe",
    via: Annotated[Way | None, typer.Option(help="Instead of smoke.via.")] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Run the probes; exit 0 when every one passed, 1 when one failed, 2 when nothing could be tried."""
    with one_line_errors():
        settings = stack_settings(stack, via, as_deployed=True)
        kinds = _classes(classes)
        earlier = asyncio.run(suite.last_green(settings)) if html else None
        report = asyncio.run(suite.run(settings, stack, kinds, listener=say))
        write(json, report.to_json())
        proves = {probe.name: probe.proves for probe in suite.probes_of(settings, kinds)}
        write(html, report_page(report, proves, earlier) if html else "")
    passed = report.verdict == "pass"
    console.print(f"smoke on {stack}: {report.verdict} in {report.seconds:g} s", style="green" if passed else "red")
    tried = [probe.name for probe in report.probes] != [suite.ENTRANCE]
    raise typer.Exit(0 if passed else 1 if tried else USAGE_ERROR)


def compare(earlier: Path, now: Path) -> None:
    """Compare two JSON reports; exit 1 when something got worse."""
    with one_line_errors():
        found = regressions(_report(earlier), _report(now))
    for one in found:
        console.print(f"✗ {one.probe}: {one.text}", markup=False, style="red")
    console.print(f"{len(found)} regression(s)")
    raise typer.Exit(1 if found else 0)


def promote(
    source: Annotated[str, typer.Option("--from", callback=stack_name, help="Stack that has proven the release.")],
    target: Annotated[str, typer.Option("--to", callback=stack_name, help="Stack that would get it.")],
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


def _report(path: Path) -> Report:
    fix = "give what `run --json` wrote, of this version"
    try:
        return Report.model_validate_json(read(path, fix))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PermanentError(f"{path} is no report: {where}: {first['msg']}", fix) from None


def _classes(text: str) -> list[ProbeClass]:
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    for part in chosen:
        if part not in CLASSES:
            raise typer.BadParameter(
                f"{part!r} is not a class; choose among {', '.join(CLASSES)}", param_hint="--classes"
            )
    if not chosen:
        raise typer.BadParameter(f"names none; choose among {', '.join(CLASSES)}", param_hint="--classes")
    return [kind for kind in CLASSES if kind in chosen]
