"""Where the local cluster lives: its addresses, its files, and the one network namespace that holds all of it."""

import ipaddress
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from local.errors import LocalError
from settings.paths import local_port, state_dir

NETWORK_NAMESPACE = "moonstack"
HOST_INTERFACE = "moonstack0"
NODE = "local-0"
API_PORT = 6443
GATEWAY_NODE_PORT = 30443
CGROUP = "k8s.io"  # where containerd puts containers of pods that have no cgroup of their own

SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
POD_RANGE = "10.88.0.0/16"
DNS_DOMAIN = "cluster.local"

_DEFAULT_SUBNET = "10.203.0.0/30"


@dataclass(frozen=True)
class Layout:
    """Addresses and folders of one local cluster; `subnet` joins the host and the node, `port` is the host's only listener."""

    state: Path
    subnet: ipaddress.IPv4Network
    port: int

    @cached_property
    def host(self) -> str:
        """The host's end of the cable to the node."""
        return str(self.subnet[1])

    @cached_property
    def node(self) -> str:
        """The node's address: the API server, NodePorts and the kubelet answer here."""
        return str(self.subnet[2])

    @property
    def server(self) -> str:
        """The API server's address, from the host and from pods on the host network."""
        return f"https://{self.node}:{API_PORT}"

    @property
    def network(self) -> Path:
        """The network namespace, for `nsenter --net=`."""
        return Path("/run/netns", NETWORK_NAMESPACE)

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.state / "pki"

    @property
    def configuration(self) -> Path:
        """Configuration files of the components."""
        return self.state / "config"

    @property
    def data(self) -> Path:
        """What etcd, containerd and the kubelet keep."""
        return self.state / "data"

    @property
    def containerd(self) -> Path:
        """The folder of containerd's socket."""
        return self.state / "containerd"

    @property
    def socket(self) -> Path:
        """containerd's socket, for `ctr --address`."""
        return self.containerd / "containerd.sock"

    def kubeconfig(self, component: str) -> Path:
        """The kubeconfig of a component of the cluster."""
        return self.configuration / f"{component}.kubeconfig"


def layout() -> Layout:
    """The layout that the environment asks for: `MOONSTACK_SUBNET` (a /30) and `MOONSTACK_PORT` change the defaults.

    Raises LocalError for values that are none.
    """
    subnet = os.environ.get("MOONSTACK_SUBNET") or _DEFAULT_SUBNET
    try:
        network = ipaddress.IPv4Network(subnet)
    except ValueError as error:
        raise LocalError(
            f"MOONSTACK_SUBNET={subnet} is no IPv4 network ({error}); example: {_DEFAULT_SUBNET}"
        ) from None
    if network.num_addresses < 4:
        raise LocalError(
            f"MOONSTACK_SUBNET={subnet} is too small, the host and the node need a /30; example: {_DEFAULT_SUBNET}"
        )
    try:
        return Layout(state_dir(), network, local_port())
    except ValueError as error:
        raise LocalError(str(error)) from None
