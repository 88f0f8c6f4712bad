"""`python -m policies`: the pack's rules over files, and the audit of a stack."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from policies.audit.cli import audit_command
from policies.manifests import ManifestError, load
from policies.report import FORMATS
from policies.rule import Facts
from policies.scan import failed, scan
from settings.command_line import stack_name
from settings.errors import SettingsError
from settings.settings import Settings

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
console = Console(stderr=True, soft_wrap=True, highlight=False)

StackOption = Annotated[
    str | None,
    typer.Option("--stack", callback=stack_name, help="Judge as this stack: reads Pulumi.<stack>.yaml."),
]


@app.command("scan")
def scan_command(
    path: Annotated[Path, typer.Argument(help="A folder of manifests, a manifest, or an exported state.")],
    stack: StackOption = None,
    output: Annotated[str, typer.Option("--format", help="text, json, markdown or sarif.")] = "text",
) -> None:
    """Run every rule over manifests or a state export; exit 1 if a mandatory rule is broken. Without a stack, as strictly as in prod."""
    if output not in FORMATS:
        raise typer.BadParameter(f"{output!r}; choose one of: {', '.join(FORMATS)}", param_hint="--format")
    try:
        violations = scan(load(path), facts(stack))
    except (ManifestError, SettingsError) as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(2) from None
    sys.stdout.write(FORMATS[output](violations))
    raise typer.Exit(1 if failed(violations) else 0)


app.command("audit")(audit_command)


@app.callback()
def main() -> None:
    """Policies of Moonstack: scan manifests and states, audit stacks."""


def facts(stack: str | None) -> Facts:
    """What rules may know of a stack. Raises SettingsError."""
    if stack is None:
        return Facts("prod")
    settings = Settings.from_stack_file(Path(f"Pulumi.{stack}.yaml"))
    return Facts(settings.environment, settings)


if __name__ == "__main__":
    app()
