"""End what runs on the node and remove what it left, also after a crash: nothing is found by name, all by namespace or cgroup."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from local.cluster import namespaces
from local.cluster.layout import CGROUP, Layout
from local.cluster.processes import Supervisor
from local.errors import LocalError

_CGROUPS = Path("/sys/fs/cgroup")
_GRACE_SECONDS = 10.0


def end_node(layout: Layout, supervisor: Supervisor) -> None:
    """Stop kubelet and containerd and kill every container; what containerd keeps in memory's place goes with them."""
    for name in ("kubelet", "containerd"):
        supervisor.stop(name)
    _kill(lambda: [*namespaces.processes_of_node(layout), *_in_cgroups()])
    supervisor.stop(namespaces.NODE_VIEW)
    for cgroup in _cgroup_folders():
        for folder in sorted((path for path in cgroup.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        cgroup.rmdir()
    for volatile in ("containerd/state", "runc", "node/run-containerd"):
        shutil.rmtree(layout.data / volatile, ignore_errors=True)


def remove_state(layout: Layout) -> None:
    """Remove the state folder; raises LocalError if something is still mounted below it, and then removes nothing."""
    below = [point for point in _mount_points() if point.is_relative_to(layout.state) and point != layout.state]
    if below:
        raise LocalError(f"{below[0]} is still mounted: unmount it (umount {below[0]}), then run down again")
    for child in layout.state.iterdir() if layout.state.exists() else ():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()
    if layout.state.exists() and not os.path.ismount(layout.state):
        layout.state.rmdir()


def _kill(found: Callable[[], Iterable[int]]) -> None:
    deadline = time.monotonic() + _GRACE_SECONDS
    while pids := list(found()):
        if time.monotonic() > deadline:
            raise LocalError(
                f"processes {', '.join(map(str, pids))} of the local node do not end; see: ps -fp {pids[0]}"
            )
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


def _cgroup_folders() -> list[Path]:
    # Version 2 has one tree, version 1 one for each controller.
    return [path for path in (_CGROUPS / CGROUP, *_CGROUPS.glob(f"*/{CGROUP}")) if path.is_dir()]


def _in_cgroups() -> list[int]:
    pids: set[int] = set()
    for cgroup in _cgroup_folders():
        for members in cgroup.rglob("cgroup.procs"):
            pids.update(int(pid) for pid in members.read_text().split())
    return sorted(pids)


def _mount_points() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4].encode().decode("unicode_escape")) for line in lines]
