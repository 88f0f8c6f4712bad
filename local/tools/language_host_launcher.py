"""Give the built Pulumi a Python language host beside its program, where the engine looks for the one that it ships with."""

import os
import shutil
from pathlib import Path

from local.tools.catalogue import LANGUAGE_HOST

_PROGRAM = Path(__file__).with_name("language_host.py")

# The cache is shared by checkouts, so the environment is found when the host starts: the engine starts it in the project.
_LAUNCHER = """\
#!/bin/sh
folder=$PWD
while [ "$folder" != / ] && [ ! -x "$folder/.venv/bin/python" ]; do folder=$(dirname "$folder"); done
if [ -x "$folder/.venv/bin/python" ]; then python=$folder/.venv/bin/python; else python=python3; fi
exec "$python" -u "$(dirname "$(readlink -f "$0")")/language_host.py" "$@"
"""


def install(folder: Path, links: Path) -> None:
    """Write the launcher and the host to `folder`, where Pulumi is, with a link in `links`."""
    _write(folder / _PROGRAM.name, _PROGRAM.read_text(), 0o644)
    _write(folder / LANGUAGE_HOST, _LAUNCHER, 0o755)
    links.mkdir(parents=True, exist_ok=True)
    link = links / LANGUAGE_HOST
    link.unlink(missing_ok=True)
    link.symlink_to(folder / LANGUAGE_HOST)


def official(links: Path) -> Path | None:
    """A language host on the user's PATH that is not ours."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != str(links)]
    found = shutil.which(LANGUAGE_HOST, path=os.pathsep.join(folders))
    return Path(found) if found else None


def _write(path: Path, text: str, mode: int) -> None:
    if path.exists() and path.read_text() == text:
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text)
    partial.chmod(mode)
    partial.replace(path)
