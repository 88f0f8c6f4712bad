"""The image of the container that holds a pod's namespaces: one static program, made and imported without a registry."""

import subprocess

from local import tools
from local.archive import Entry, ImageConfig, write_image, write_layer
from local.cluster.layout import Layout
from local.errors import LocalError

PAUSE_IMAGE = "localhost/moonstack/pause:1"


def ensure_image(layout: Layout) -> bool:
    """Import the image into the node's containerd unless it is there; False while containerd does not answer yet.

    Raises LocalError if containerd refuses the image.
    """
    listed = _ctr(layout, "images", "list", "--quiet", f"name=={PAUSE_IMAGE}")
    if listed.returncode or PAUSE_IMAGE in listed.stdout.split():
        return listed.returncode == 0
    layer, image = layout.data / "pause-layer.tar", layout.data / "pause.tar"
    write_layer(layer, [Entry("/pause", tools.path("pause"), mode=0o755)])
    write_image(image, PAUSE_IMAGE, [layer], ImageConfig(command=["/pause"], user="65535:65535"))
    done = _ctr(layout, "images", "import", str(image))
    if done.returncode:
        raise LocalError(f"containerd refused the pause image: {done.stderr.strip()}")
    return True


def _ctr(layout: Layout, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["ctr", "--address", str(layout.socket), "--namespace", "k8s.io", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
