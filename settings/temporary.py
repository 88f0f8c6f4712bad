"""Temporary files of the tools we call: in a folder that goes with the process.

kr8s writes the client certificate and its private key to a temporary file for every connection, Pulumi's Kubernetes
provider the whole kubeconfig; both leave them there. Keys don't stay in a shared folder.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

_PREFIX: Final = "moonstack-own-"


@cache
def private_folder() -> Path:
    """This process's own folder (mode 700), where Python's `tempfile` writes from now on; removed when the process ends.

    Folders whose process was killed are removed too: a living one holds a lock on its own.
    """
    shared = Path(tempfile.gettempdir())
    for left in shared.glob(f"{_PREFIX}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=shared))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(held, fcntl.LOCK_EX)
    atexit.register(_remove, folder, os.getpid())
    tempfile.tempdir = str(folder)
    return folder


def environment() -> dict[str, str]:
    """Our environment for a command whose temporary files shall go with us."""
    return {**os.environ, "TMPDIR": str(private_folder())}


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends too
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(folder: Path) -> None:
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(held)
