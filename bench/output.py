"""Where figures go beside the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from settings.command_line import writable

JsonFile = Annotated[
    Path | None, typer.Option("--json", callback=writable, help="Also write the figures to this file; - for stdout.")
]
