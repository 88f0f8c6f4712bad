"""`python -m settings`: check stack files; print their schema and their reference."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from settings.errors import SettingsError
from settings.reference import reference
from settings.schema import stack_file_schema
from settings.settings import Settings

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def check(paths: Annotated[list[Path], typer.Argument(help="Stack files: Pulumi.<stack>.yaml.")]) -> None:
    """Say every problem of stack files, one line each; exit 2 if there is any."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    refused = False
    for path in paths:
        try:
            Settings.from_stack_file(path)
        except SettingsError as error:
            refused = True
            console.print(str(error), style="red", markup=False)
        else:
            sys.stdout.write(f"{path}: valid\n")
    raise typer.Exit(2 if refused else 0)


@app.command()
def schema() -> None:
    """Print the JSON schema of stack files, for editors."""
    sys.stdout.write(json.dumps(stack_file_schema(), indent=2) + "\n")


@app.command(name="reference")
def show_reference() -> None:
    """Print docs/settings.md: every key with type, default, limits and meaning."""
    sys.stdout.write(reference())


if __name__ == "__main__":
    app()
