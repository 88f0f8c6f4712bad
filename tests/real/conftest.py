"""The real parts: one local cluster and one dev stack for all tests of this folder.

The cluster goes when the tests end, unless MOONSTACK_KEEP=1.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local import runtime
from local.cluster.layout import layout
from local.progress import Progress
from settings.paths import local_kubeconfig, state_dir
from settings.settings import Settings

ROOT = Path(__file__).parents[2]


def run(*command: str, timeout: int = 600, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A command in the checkout, its output captured."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    if check:
        assert done.returncode == 0, (
            f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done


def local(*arguments: str, timeout: int = 2400, check: bool = True) -> subprocess.CompletedProcess[str]:
    """`python -m local …`."""
    return run(sys.executable, "-m", "local", *arguments, timeout=timeout, check=check)


@dataclass(frozen=True)
class DevStack:
    """The deployed dev stack: where it answers, whom to trust, and its settings."""

    endpoint: str
    ca: Path
    settings: Settings
    outputs: dict[str, object]

    def key(self, id: str) -> str:
        """The value of a key of dev."""
        return (state_dir() / "keys" / id).read_text()

    @property
    def namespace(self) -> str:
        """The stack's namespace."""
        return self.settings.cluster.namespace


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The kubeconfig of the running local cluster, which has the images of our pods."""
    local("up")
    runtime.ensure(Progress())
    runtime.import_images(layout().socket, Progress())
    yield local_kubeconfig()
    if os.environ.get("MOONSTACK_KEEP") != "1":
        local("down")


@pytest.fixture(scope="session")
def dev_stack(cluster: Path) -> DevStack:
    """The dev stack, deployed and past its gate."""
    local("deploy")
    outputs = json.loads(local("pulumi", "stack", "output", "--json").stdout)
    settings = Settings.from_stack_file(ROOT / "Pulumi.dev.yaml")
    return DevStack(str(outputs["endpoint"]), state_dir() / "gateway" / "ca.crt", settings, outputs)


def kubectl(*arguments: str, check: bool = True) -> str:
    """kubectl against the local cluster."""
    program = str(Path(sys.prefix, "bin", "kubectl"))
    return run(program, "--kubeconfig", str(local_kubeconfig()), *arguments, check=check).stdout
