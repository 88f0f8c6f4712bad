"""The node's processes: containerd, kubelet and kube-proxy, with the settings that one machine without Docker needs."""

import json
import os
from pathlib import Path

from local import tools
from local.cluster import namespaces, pki
from local.cluster.files import write
from local.cluster.layout import DNS_DOMAIN, DNS_SERVICE, NODE, POD_RANGE, Layout
from local.cluster.pause import PAUSE_IMAGE
from local.cluster.processes import Service, Supervisor

MIB = 1 << 20
GIB = 1 << 30
ALLOCATABLE_BYTES = 17 * GIB
"""Five engines of 3 GiB and 2 GiB for everything small; a sixth engine must not fit."""
LEFT_TO_THE_MACHINE_BYTES = 3 * GIB
EVICTION_BYTES = 100 * MIB

BRIDGE = "moonstack-pods"


def allocatable_bytes(machine: int) -> int:
    """How much memory pods may request on a machine of so many bytes."""
    return min(ALLOCATABLE_BYTES, machine - LEFT_TO_THE_MACHINE_BYTES)


def machine_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def has_cgroup_v2() -> bool:
    """Whether the unified hierarchy is the one in use."""
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def containerd(layout: Layout, supervisor: Supervisor) -> Service:
    """containerd with its own root, state and socket."""
    configuration, network = _containerd_configuration(layout), json.dumps(_pod_network(layout))
    target = write(layout.configuration / "containerd.toml", configuration)
    write(layout.configuration / "net.d/10-moonstack.conflist", network)
    enter = namespaces.enter_node(layout, supervisor)
    return Service("containerd", ("containerd", "--config", str(target)), enter, configuration + network)


def kubelet(layout: Layout, supervisor: Supervisor) -> Service:
    """The kubelet of the only real node."""
    configuration = json.dumps(_kubelet_configuration(layout, machine_bytes()))
    write(layout.configuration / "resolv.conf", f"nameserver {DNS_SERVICE}\n")
    flags = {
        "config": write(layout.configuration / "kubelet.json", configuration),
        "kubeconfig": layout.kubeconfig("kubelet"),
        "hostname-override": NODE,
        "node-ip": layout.node,
    }
    command = (str(tools.path("kubelet")), *(f"--{flag}={value}" for flag, value in flags.items()))
    return Service("kubelet", command, namespaces.enter_node(layout, supervisor), configuration)


def kube_proxy(layout: Layout) -> Service:
    """kube-proxy with nftables, in the cluster's network."""
    document = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(layout.kubeconfig("kube-proxy"))},
        # Connection tracking is limited for the whole machine, which is not this cluster's to change.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "oomScoreAdj": 0,
    }
    configuration = json.dumps(document)
    command = (
        str(tools.path("kube-proxy")),
        f"--config={write(layout.configuration / 'kube-proxy.json', configuration)}",
    )
    return Service("kube-proxy", command, namespaces.enter_network(layout), configuration)


def _containerd_configuration(layout: Layout) -> str:
    data = layout.data / "containerd"
    return f"""\
version = 2
root = "{data}/root"
state = "{data}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{layout.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{data}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # A lower oom_score_adj needs CAP_SYS_RESOURCE, which a container or a small virtual machine may lack.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.configuration}/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{data}/runc"
"""


def _pod_network(layout: Layout) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.data / "cni"),
        "ranges": [[{"subnet": POD_RANGE}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": addresses,
    }
    return {
        "cniVersion": "1.0.0",
        "name": "moonstack",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _kubelet_configuration(layout: Layout, machine: int) -> dict[str, object]:
    reserved = machine - allocatable_bytes(machine) - EVICTION_BYTES
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki.certificate_file(layout, "ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki.certificate_file(layout, "kubelet-server")),
        "tlsPrivateKeyFile": str(pki.key_file(layout, "kubelet-server")),
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": DNS_DOMAIN,
        "resolvConf": str(layout.configuration / "resolv.conf"),
        "podLogsDir": str(layout.data / "pod-logs"),
        "volumePluginDir": str(layout.data / "volume-plugins"),
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "syncFrequency": "5s",  # changed ConfigMaps and Secrets reach pods in seconds, not in a minute
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "systemReserved": {"memory": str(reserved)},
        "evictionHard": {"memory.available": str(EVICTION_BYTES), "nodefs.available": "1%", "imagefs.available": "1%"},
        # There is no registry: an image that the kubelet cleans up is gone.
        "imageGCHighThresholdPercent": 100,
        "shutdownGracePeriod": "0s",
    }
