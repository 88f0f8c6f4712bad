"""Simulated nodes: KWOK plays the kubelet of nodes that carry its annotation, so that shape and scale can be rehearsed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local import tools
from local.cluster import namespaces, objects
from local.cluster.addons.addon import Addon
from local.cluster.api import Api
from local.cluster.files import write
from local.cluster.layout import Layout
from local.cluster.processes import Service
from local.tools import go
from local.tools.catalogue import BUILD_OF

ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
SIMULATED = "moonstack.dev/simulated"

_TOOL = "kwok"
_MODULE = "sigs.k8s.io/kwok"
_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
"""What nodes and pods go through: ready at once, gone when deleted."""


@dataclass(frozen=True)
class SimulatedPool:
    """Nodes of one shape, named `<name>-<index>`; `chips` maps an extended resource to its count on each node.

    `memory` and `cpu` are Kubernetes quantities, `taints` are as in a node's `spec.taints`.
    """

    name: str
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    chips: Mapping[str, int] = field(default_factory=dict)
    architecture: str = "amd64"
    taints: tuple[Mapping[str, str], ...] = ()
    cpu: str = "64"
    memory: str = "512Gi"
    pods: int = 110

    def node(self, index: int) -> dict[str, Any]:
        """The node object, without its status."""
        name = f"{self.name}-{index}"
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": self.architecture,
            SIMULATED: "true",
            **self.labels,
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": ANNOTATION},
            "spec": {"taints": [dict(taint) for taint in self.taints]},
        }

    def status(self) -> dict[str, Any]:
        """What each node offers; its conditions are KWOK's to write."""
        offer = {
            "cpu": self.cpu,
            "memory": self.memory,
            "pods": str(self.pods),
            **{name: str(n) for name, n in self.chips.items()},
        }
        return {"capacity": offer, "allocatable": offer}


def simulate_nodes(api: Api, pools: Iterable[SimulatedPool]) -> list[str]:
    """Create the pools' nodes, or bring them to the declared shape; returns their names. The addon has to run."""
    names = []
    for pool in pools:
        for index in range(pool.count):
            node = pool.node(index)
            api.apply(node)
            api.patch(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": pool.status()})
            names.append(node["metadata"]["name"])
    return names


def remove_simulated_nodes(api: Api, pool: str | None = None) -> None:
    """Delete every simulated node, or those of one pool, and the pods on them, which no kubelet would let go."""
    for node in api.get("/api/v1/nodes", labelSelector=f"{SIMULATED}=true")["items"]:
        name = node["metadata"]["name"]
        if pool is None or name.rpartition("-")[0] == pool:
            api.delete(f"/api/v1/nodes/{name}")
            for pod in api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")["items"]:
                path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
                api.delete(path, gracePeriodSeconds="0")


def _service(layout: Layout) -> Service:
    selector = ",".join(f"{key}={value}" for key, value in ANNOTATION.items())
    stages = _stages()
    flags = {
        "config": write(layout.configuration / "kwok-stages.yaml", stages),
        "kubeconfig": layout.kubeconfig(_TOOL),
        "manage-all-nodes": "false",
        "manage-nodes-with-annotation-selector": selector,
        "node-lease-duration-seconds": "40",
    }
    command = (str(tools.path(_TOOL)), *(f"--{flag}={value}" for flag, value in flags.items()))
    return Service(_TOOL, command, namespaces.enter_network(layout), stages)


def _stages() -> str:
    folder = go.module_folder(BUILD_OF[_TOOL].folder, _MODULE) / "kustomize" / "stage"
    return "\n---\n".join((folder / name).read_text() for name in _STAGES)


def _clean(layout: Layout, api: Api) -> None:
    remove_simulated_nodes(api)


KWOK = Addon(name="kwok", tool=_TOOL, objects=objects.kwok, service=_service, clean=_clean)
