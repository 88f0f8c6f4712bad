"""Node pools: which nodes, which chips."""

from typing import Literal

from pydantic import Field

from rules import labels
from rules.chips import Arch
from settings.base import Bytes, Cpu, DnsLabel, Group, LabelKey, LabelValue, ObjectName, ResourceName


class Toleration(Group):
    """A taint that the pool's nodes carry (set by the node group, NFD or Karpenter) and our pods tolerate."""

    key: LabelKey
    """The taint's key."""
    value: LabelValue | None = None
    """The taint's value; any when not given."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """The taint's effect."""

    def toleration(self) -> dict[str, str]:
        """As a pod tolerates it; without a value, whatever value the taint has."""
        match = {"operator": "Exists"} if self.value is None else {"operator": "Equal", "value": self.value}
        return {"key": self.key, **match, "effect": self.effect}

    def taint(self) -> dict[str, str]:
        """As a node carries it."""
        return {"key": self.key, "value": self.value or "", "effect": self.effect}


class NodeClassRef(Group):
    """Karpenter's node class of the cloud, which says what machines it may start."""

    group: ObjectName
    """API group of the node class."""
    kind: str = Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)
    """Its kind, such as EC2NodeClass."""
    name: DnsLabel
    """Its name."""


class NodePoolSettings(Group):
    """One pool of equal nodes."""

    name: DnsLabel
    """The pool's name, which placements give as `pool`; also the node label `moonstack.dev/pool`."""
    mode: Literal["existing", "labels", "karpenter"] = "existing"
    """existing: verify and write nothing; labels: write our own labels on `nodes`; karpenter: declare a Karpenter NodePool."""
    chip: str
    """A chip profile's id (rules/chips)."""
    driver_stack: str
    """The driver stack whose resource name and labels the nodes use (rules/chips)."""
    arch: Arch
    """The architecture of all nodes; every pod on the pool pins it."""
    nodes: tuple[ObjectName, ...] = ()
    """Names of the nodes, for mode labels."""
    count: int = Field(default=1, ge=1, le=10_000)
    """Number of nodes, where `nodes` names none."""
    chips_per_node: int = Field(ge=0, le=64)
    """Chips that a node advertises."""
    cpu: Cpu = "8"
    """What a node has for pods."""
    memory: Bytes = "64Gi"
    """What a node has for pods."""
    pool_label: LabelValue = Field(default="high-memory", min_length=1)
    """Value of the node label `gpu.pool`."""
    nvlink: bool = False
    """Whether the node label `gpu.topology/nvlink: "true"` is set (or required)."""
    node_class_ref: NodeClassRef | None = None
    """For mode karpenter."""
    topology_key: LabelKey | None = None
    """Node label that groups nodes which are near each other; a PD group is kept within one value."""
    rdma_resource: ResourceName | None = None
    """Extended resource of the nodes' RDMA device plugin, such as rdma/hca_shared_devices_a: each engine and store pod asks for one."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of the nodes that our pods tolerate; Moonstack never writes taints."""
    cost_per_chip_hour: float | None = Field(default=None, ge=0, le=1_000_000)
    """Yuan a chip and hour; the chip profile's figure when not given."""

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes) or self.count

    def node_labels(self) -> dict[str, str]:
        """The labels that Moonstack writes on (or, in mode existing, expects of) the pool's nodes."""
        nvlink = {labels.NODE_NVLINK: "true"} if self.nvlink else {}
        return {labels.NODE_POOL: self.pool_label, labels.CHIP: self.chip, labels.POOL: self.name} | nvlink

    def node_selector(self) -> dict[str, str]:
        """What every pod on this pool selects: the pool's labels and its architecture."""
        return self.node_labels() | {labels.ARCH: self.arch}
