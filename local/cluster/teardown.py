"""End what runs on the node and remove what it left, also after a crash: nothing is found by name, all by namespace or cgroup."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from local.cluster import namespaces
from local.cluster.layout import CGROUP, Layout
from local.cluster.processes import Supervisor
from local.errors import LocalError

_CGROUPS = Path("/sys/fs/cgroup")
_GRACE_SECONDS = 10.0


def end_node(layout: Layout, supervisor: Supervisor) -> None:
    """Stop kubelet and containerd and kill every container; what containerd keeps in memory's place goes with them."""
    supervisor.stop("kubelet", "containerd")
    _kill(lambda: [*namespaces.processes_of_node(layout), *_in_cgroups(layout)])
    supervisor.stop(namespaces.NODE_VIEW)
    _remove_cgroups(layout)
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


def _cgroup_folders(layout: Layout) -> list[Path]:
    """The cgroups of this containerd's own containers: version 2 has one tree, version 1 one for each controller."""
    tasks = layout.data / "containerd/state/io.containerd.runtime.v2.task/k8s.io"
    containers = {task.name for task in tasks.iterdir()} if tasks.is_dir() else set()
    folders = [folder for tree in (_CGROUPS, *_CGROUPS.iterdir()) for folder in (tree / CGROUP).glob("*")]
    return [folder for folder in folders if folder.name in containers]


def _in_cgroups(layout: Layout) -> set[int]:
    members = [file for cgroup in _cgroup_folders(layout) for file in cgroup.rglob("cgroup.procs")]
    return {int(pid) for file in members for pid in file.read_text().split()}


def _remove_cgroups(layout: Layout) -> None:
    for cgroup in _cgroup_folders(layout):
        for folder in sorted((path for path in cgroup.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        cgroup.rmdir()
        with suppress(OSError):  # containers that are not ours may be there too
            cgroup.parent.rmdir()


def _mount_points() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4].encode().decode("unicode_escape")) for line in lines]
