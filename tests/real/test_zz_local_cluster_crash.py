"""After a crash of everything at once, `down` still removes all that the cluster left. Runs last: it takes the cluster down."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from local.cluster import namespaces
from local.cluster.layout import HOST_INTERFACE, layout
from local.cluster.processes import Supervisor
from settings.local_runtime import LocalRuntime
from tests.real.conftest import kubectl, local

pytestmark = pytest.mark.real


def _crash() -> list[int]:
    """Kill every recorded process, so that only what they started lives on: shims and containers."""
    supervisor = Supervisor(layout().state)
    pids = [pid for name in supervisor.names() if (pid := supervisor.running(name)) is not None]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def _leftovers() -> list[str]:
    place = layout()
    tasks = [str(path) for path in Path("/sys/fs/cgroup").glob("*/k8s.io/*") if path.is_dir()]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(place.state) in line]
    paths = [place.state, place.network, Path("/sys/class/net", HOST_INTERFACE)]
    programs = subprocess.run(
        ["pgrep", "--full", f"{place.state}|^/pause$"], capture_output=True, text=True, check=False
    )
    return [*tasks, *mounts, *(str(path) for path in paths if path.exists()), *programs.stdout.split()]


def test_pods_come_back_after_the_whole_node_crashed(cluster: Path):
    """A pod's processes outlive the crash: they are this cluster's own, and no reason to refuse to start."""
    image = LocalRuntime.load().images["capacity"]
    kubectl(
        "run", "survivor", f"--image={image}", "--image-pull-policy=IfNotPresent", "--command", "--", "sleep", "600"
    )
    kubectl("wait", "--for=condition=Ready", "pod/survivor", "--timeout=60s")
    assert len(_crash()) >= 10
    local("up")
    assert local("status").returncode == 0
    kubectl("wait", "--for=condition=Ready", "pod/survivor", "--timeout=60s")


def test_down_after_a_crash_leaves_nothing(cluster: Path):
    _crash()
    local("down")
    assert namespaces.processes_in_network(layout()) == []
    assert _leftovers() == []


def test_down_without_a_cluster_and_up_after_it_are_harmless(cluster: Path):
    local("down")
    local("up")
    assert local("status").returncode == 0
