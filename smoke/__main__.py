"""`python -m smoke`: proof on a live stack."""

import asyncio
from typing import Annotated

import typer

from settings.smoke import Way
from smoke import suite
from smoke.console import HtmlOption, JsonOption, StackOption, console, one_line_errors, say, stack_settings, write
from smoke.report import ProbeClass

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
        report = asyncio.run(suite.run(settings, stack, _classes(classes), listener=say))
        write(json, report.to_json())
    console.print(
        f"smoke on {stack}: {report.verdict} in {report.seconds:g} s",
        style="green" if report.verdict == "pass" else "red",
    )
    raise typer.Exit(0 if report.verdict == "pass" else 1)


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
