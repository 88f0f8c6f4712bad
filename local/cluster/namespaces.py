"""The cluster's two namespaces: a network of its own, and a view of the file system in which its mounts stay unseen."""

import os
import shlex
import subprocess
from pathlib import Path

from local.cluster.layout import HOST_INTERFACE, NETWORK_NAMESPACE, Layout
from local.cluster.processes import Service, Supervisor
from local.errors import LocalError

NODE_VIEW = "node-view"
_HARD_CODED = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/run/containerd")
"""Folders that the kubelet, CNI and containerd's shims use whatever their flags say; the node sees its own there."""

_NODE_INTERFACE = "uplink0"


def ensure_network(layout: Layout) -> None:
    """Create the network namespace and the cable to it; what is already there is kept."""
    if not layout.network.exists():
        _ip("netns", "add", NETWORK_NAMESPACE)
    inside = ("netns", "exec", NETWORK_NAMESPACE, "ip")
    if not Path("/sys/class/net", HOST_INTERFACE).exists():
        _ip("link", "add", HOST_INTERFACE, "type", "veth", "peer", "name", _NODE_INTERFACE, "netns", NETWORK_NAMESPACE)
    length = layout.subnet.prefixlen
    _ip("address", "replace", f"{layout.host}/{length}", "dev", HOST_INTERFACE)
    _ip("link", "set", HOST_INTERFACE, "up")
    _ip(*inside, "link", "set", "lo", "up")
    _ip(*inside, "address", "replace", f"{layout.node}/{length}", "dev", _NODE_INTERFACE)
    _ip(*inside, "link", "set", _NODE_INTERFACE, "up")
    _ip(*inside, "route", "replace", "default", "via", layout.host)
    set_inside(layout, "net/ipv4/ip_forward", "1")
    set_inside(layout, "net/bridge/bridge-nf-call-iptables", "1")


def remove_network(layout: Layout) -> None:
    """Remove the namespace; both ends of the cable go with it."""
    if Path("/sys/class/net", HOST_INTERFACE).exists():
        _ip("link", "delete", HOST_INTERFACE)
    if layout.network.exists():
        _ip("netns", "delete", NETWORK_NAMESPACE)


def ensure_node_view(layout: Layout, supervisor: Supervisor) -> None:
    """Keep one process in a mount namespace where the hard-coded folders are the node's own; it lives as long as the node."""
    if supervisor.running(NODE_VIEW) is not None:  # never replaced: containers would be left in the view before
        return
    binds = []
    for folder in _HARD_CODED:
        own = layout.data / "node" / folder.strip("/").replace("/", "-")
        own.mkdir(parents=True, exist_ok=True)
        _create_mount_point(layout, Path(folder))
        binds.append(shlex.join(["mount", "--bind", str(own), folder]))
    ready = _ready_file(layout)
    target, partial = shlex.quote(str(ready)), shlex.quote(f"{ready}.partial")
    identify = f"stat --dereference --format=%i /proc/self/ns/mnt > {partial} && mv {partial} {target}"
    script = " && ".join([*binds, identify, "exec sleep infinity"])
    service = Service(NODE_VIEW, ("unshare", "--mount", "--propagation", "slave", "sh", "-c", script))
    ready.unlink(missing_ok=True)
    supervisor.ensure(service)


def node_view_ready(layout: Layout) -> bool:
    """Whether the node's folders are in place, so that a process may enter."""
    return _ready_file(layout).exists()


def enter_network(layout: Layout) -> tuple[str, ...]:
    """Run a program in the cluster's network. (`ip netns exec` would hide the cgroups, since it mounts /sys anew.)"""
    return ("nsenter", f"--net={layout.network}", "--")


def enter_node(layout: Layout, supervisor: Supervisor) -> tuple[str, ...]:
    """Run a program as part of the node: its network and its view of the file system."""
    return ("nsenter", f"--net={layout.network}", f"--mount=/proc/{supervisor.running(NODE_VIEW)}/ns/mnt", "--")


def set_inside(layout: Layout, name: str, value: str) -> None:
    """Write a network setting of the namespace; raises LocalError if the kernel has none of that name."""
    command = [*enter_network(layout), "sh", "-c", f"echo {value} > /proc/sys/{name}"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise LocalError(f"the kernel has no /proc/sys/{name}; load its module (modprobe br_netfilter) and run again")


def processes_in_network(layout: Layout) -> list[int]:
    """Who runs in the cluster's network namespace; pods have networks of their own and are not among them."""
    network = _inode(layout.network)
    return [pid for pid in _processes() if network is not None and _inode(Path(f"/proc/{pid}/ns/net")) == network]


def processes_of_node(layout: Layout) -> list[int]:
    """containerd, its shims, the kubelet: who is in the cluster's network and in the node's view, also when the view's keeper died."""
    if not node_view_ready(layout):
        return []
    view = int(_ready_file(layout).read_text())
    return [pid for pid in processes_in_network(layout) if _inode(Path(f"/proc/{pid}/ns/mnt")) == view]


def remove_mount_points(layout: Layout) -> None:
    """Remove the empty folders that were made to mount over; those that were there before stay."""
    record = _mount_points(layout)
    for folder in reversed(record.read_text().splitlines() if record.exists() else []):
        if Path(folder).is_dir() and not any(Path(folder).iterdir()):
            Path(folder).rmdir()


def _create_mount_point(layout: Layout, folder: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    with _mount_points(layout).open("a") as record:
        record.write(f"{folder}\n")


def _mount_points(layout: Layout) -> Path:
    return layout.state / "mount-points"


def _ready_file(layout: Layout) -> Path:
    return layout.data / "node" / "ready"


def _processes() -> list[int]:
    return [int(process.name) for process in Path("/proc").glob("[0-9]*")]


def _inode(namespace: Path) -> int | None:
    try:
        return os.stat(namespace).st_ino
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalError(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
