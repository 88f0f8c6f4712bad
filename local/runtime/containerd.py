"""Import images into the cluster's containerd, from archives written on the way: there is no registry."""

import subprocess
import tempfile
from pathlib import Path

from local.errors import LocalError
from local.progress import Progress
from local.runtime import base, cache, images

_NAMESPACE = "k8s.io"


def import_images(socket: Path, progress: Progress) -> None:
    """Import every image that containerd does not have yet; `socket` is its address.

    Raises LocalError if containerd does not answer or refuses an image.
    """
    present = set(_ctr(socket, "images", "list", "--quiet").splitlines())
    wanted = [name for name in images.names() if images.reference(name) not in present]
    if not wanted:
        return
    cache.runtime_dir().mkdir(parents=True, exist_ok=True)
    with progress.phase(f"images into containerd: {', '.join(wanted)}"):
        for name in wanted:
            with tempfile.TemporaryDirectory(dir=cache.runtime_dir(), prefix=".import-") as scratch:
                file = Path(scratch, f"{name}.tar")
                images.write(name, file, progress)
                _ctr(socket, "images", "import", str(file))


def _ctr(socket: Path, *arguments: str) -> str:
    command = ["ctr", "--address", str(socket), "--namespace", _NAMESPACE, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LocalError("ctr is not installed; it comes with containerd: python -m local up installs it") from None
    if done.returncode:
        raise LocalError(f"containerd at {socket}: ctr {' '.join(arguments[:2])} failed: {base.last_line(done.stderr)}")
    return done.stdout
