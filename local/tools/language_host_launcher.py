"""Put a `pulumi-language-python` on PATH where the user's Pulumi brings none."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from local.tools.catalogue import LANGUAGE_HOST

_PROGRAM = Path(__file__).with_name("language_host.py")


def install(tools: Path) -> None:
    """Write the launcher beside this environment's Python, since it belongs to that and not to the shared cache.

    `tools` is the folder of built tools; nothing is written where an official host is on PATH.
    """
    if _official(tools) is not None:
        _own().unlink(missing_ok=True)
        return
    python, program = (shlex.quote(str(part)) for part in (Path(sys.prefix, "bin", "python"), _PROGRAM))
    text = f'#!/bin/sh\nexec {python} -u {program} "$@"\n'
    if not _own().exists() or _own().read_text() != text:
        partial = _own().with_name(f".{LANGUAGE_HOST}.partial")
        partial.write_text(text)
        partial.chmod(0o755)
        partial.replace(_own())


def find(tools: Path) -> Path | None:
    """The language host that the engine will find: an official one, else ours, else None."""
    return _official(tools) or (_own() if _own().exists() else None)


def _own() -> Path:
    return Path(sys.prefix, "bin", LANGUAGE_HOST)


def _official(tools: Path) -> Path | None:
    ours = {str(_own().parent), str(tools)}
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder not in ours]
    found = shutil.which(LANGUAGE_HOST, path=os.pathsep.join(folders))
    return Path(found) if found else None
