"""Import images into the cluster's containerd, from archives written on the way: there is no registry."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from local import archive
from local.errors import LocalError
from local.progress import Progress
from local.runtime import base, cache, images

_NAMESPACE = "k8s.io"


def import_images(socket: Path, references: Mapping[str, str], progress: Progress) -> None:
    """Import the images, name → reference, that containerd at `socket` does not have yet; their layers must be in the cache.

    Raises LocalError if containerd does not answer or refuses an image.
    """
    present = set(_ctr(socket, "images", "list", "--quiet").splitlines())
    wanted = {name: reference for name, reference in references.items() if reference not in present}
    if not wanted:
        return
    with (
        progress.phase(f"images into containerd: {', '.join(wanted)}"),
        tempfile.TemporaryDirectory(dir=cache.runtime_dir(), prefix=".import-") as scratch,
    ):
        file = Path(scratch, "images.tar")
        archive.write_images(file, [images.built(name, reference) for name, reference in wanted.items()])
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
