"""What this machine must have before anything is changed on it: one line for each thing that is missing."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from pathlib import Path

from local.cluster.layout import HOST_INTERFACE, Layout
from local.cluster.node import GIB, machine_bytes
from local.errors import LocalError
from settings.paths import cache_dir

MEMORY_BYTES = 12 * GIB
FRESH_DISK_BYTES = 25 * 10**9
BUILT_DISK_BYTES = 3 * 10**9
SOCKET_PATH_LENGTH = 100  # sockaddr_un holds 108 bytes with its end; shims add none to ours


def check(layout: Layout) -> None:
    """Raises LocalError with every problem found, a line each."""
    problems = list(_system()) or [*_kernel(), *_resources(layout), *_addresses(layout)]
    if problems:
        raise LocalError("\n".join(problems))


def _system() -> Iterator[str]:
    if not sys.platform.startswith("linux"):
        yield f"the local cluster needs Linux, this is {sys.platform}: use a Linux machine or virtual machine"
    elif platform.machine() != "x86_64":
        yield f"the engines' wheels are made for x86_64, this is {platform.machine()}: use another machine"
    elif os.geteuid() != 0:
        yield "the local cluster needs root for its network and containers: run as root, or through sudo --preserve-env"
    elif shutil.which("dpkg-query") is None:
        yield "containerd and its companions come from Debian packages and dpkg is not here: use Debian or Ubuntu"


def _kernel() -> Iterator[str]:
    controllers = Path("/sys/fs/cgroup/cgroup.controllers")
    has_v2 = controllers.exists() and {"cpu", "memory", "pids"} <= set(controllers.read_text().split())
    if not has_v2 and not Path("/sys/fs/cgroup/memory/cgroup.procs").exists():
        yield "no memory cgroup is mounted below /sys/fs/cgroup: mount cgroup2 there, or boot with cgroup_enable=memory"
    probes: dict[str, Callable[[], bool]] = {
        "overlay": lambda: "overlay" in Path("/proc/filesystems").read_text().split(),
        "nf_tables": lambda: _in_new_network("nft", "add", "table", "ip", "probe"),
        "veth": lambda: _in_new_network("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"),
        "bridge": lambda: _in_new_network("ip", "link", "add", "probe0", "type", "bridge"),
        "br_netfilter": lambda: Path("/proc/sys/net/bridge/bridge-nf-call-iptables").exists(),
    }
    for module, works in probes.items():
        if not works():
            if shutil.which("modprobe"):
                subprocess.run(["modprobe", "--quiet", module], capture_output=True, check=False)
            if not works():
                yield f"the kernel lacks {module}: load the module (modprobe {module}) or use a kernel that has it"


def _resources(layout: Layout) -> Iterator[str]:
    if machine_bytes() < MEMORY_BYTES:
        yield f"{machine_bytes() / GIB:.1f} GiB of memory: three engines and the cluster need {MEMORY_BYTES // GIB} GiB"
    needed = BUILT_DISK_BYTES if (cache_dir() / "runtime").exists() else FRESH_DISK_BYTES
    free = shutil.disk_usage(_existing(cache_dir())).free
    if free < needed:
        yield (
            f"{free / 1e9:.0f} GB free for {cache_dir()}, builds and images need {needed / 1e9:.0f} GB:"
            " free some, or set MOONSTACK_CACHE to another disk"
        )
    if len(str(layout.socket)) > SOCKET_PATH_LENGTH:
        yield f"{layout.state} is too long a path for sockets (at most {SOCKET_PATH_LENGTH} characters): set MOONSTACK_STATE"
    if _file_system(_existing(layout.state)) == "overlayfs":
        yield f"{layout.state} is on overlayfs, where containers cannot be kept: set MOONSTACK_STATE to a folder on a disk"


def _addresses(layout: Layout) -> Iterator[str]:
    routes = json.loads(_output("ip", "-4", "-json", "route", "show") or "[]")  # ip may be yet to be installed
    for route in routes:
        if route["dst"] == "default" or route.get("dev") == HOST_INTERFACE:
            continue
        if IPv4Network(route["dst"], strict=False).overlaps(layout.subnet):
            yield (
                f"{layout.subnet} is in use here (route {route['dst']} by {route.get('dev')}):"
                " set MOONSTACK_SUBNET to a free /30"
            )


def _in_new_network(*command: str) -> bool:
    """Whether the command works in a network of its own; a program that is yet to be installed proves nothing."""
    if shutil.which(command[0]) is None:
        return True
    return subprocess.run(["unshare", "--net", *command], capture_output=True, check=False).returncode == 0


def _file_system(folder: Path) -> str:
    return _output("stat", "--file-system", "--format=%T", str(folder)).strip()


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _existing(folder: Path) -> Path:
    return folder if folder.exists() else _existing(folder.parent)
