"""What the engine prints of a stack: previews for machines and for people."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from policies.audit.run import Place, Unreadable

_TIMEOUT_SECONDS: Final = 600


def places(pulumi: Sequence[str]) -> list[Place]:
    """`preview --json` and `preview --diff`, by a command such as `python -m local pulumi --stack dev`."""

    def place(flag: str) -> Place:
        return Place(f"pulumi preview {flag}", lambda: _output([*pulumi, "preview", flag, "--non-interactive"]))

    return [place("--json"), place("--diff")]


def files(folder: Path) -> Place:
    """A folder of rendered manifests, reports or logs; Secrets in it are searched like all else."""
    return Place(f"files below {folder}", lambda: _files(folder))


def _output(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreadable(f"pulumi could not be run ({type(error).__name__})") from None
    yield "stdout", done.stdout
    yield "stderr", done.stderr
    if done.returncode:
        raise Unreadable(f"the preview ended with exit {done.returncode}; what it printed until then was searched")


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    if not folder.is_dir():
        raise Unreadable(f"{folder} is no folder")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_text(errors="replace")
