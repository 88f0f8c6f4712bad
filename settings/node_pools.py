"""Node pools: which nodes, which chips."""

from typing import Literal

from pydantic import Field

from rules.chips import Arch
from settings.base import DnsLabel, Group, Quantity


class Toleration(Group):
    """A taint that the pool's nodes carry (set by the node group, NFD or Karpenter) and our pods tolerate."""

    key: str
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class NodePoolSettings(Group):
    """One pool of equal nodes."""

    name: DnsLabel
    mode: Literal["existing", "labels", "karpenter"] = "existing"
    """existing: verify and write nothing; labels: write our own labels on `nodes`; karpenter: declare a Karpenter NodePool."""
    chip: str
    """A chip profile's id (rules/chips)."""
    driver_stack: str
    """The driver stack whose resource name and labels the nodes use (rules/chips)."""
    arch: Arch
    nodes: tuple[str, ...] = ()
    """Names of the nodes, for mode labels."""
    count: int = Field(default=1, ge=1, le=10_000)
    chips_per_node: int = Field(ge=0, le=64)
    cpu: Quantity = "8"
    memory: Quantity = "64Gi"
    pool_label: str = "high-memory"
    """Value of the node label `gpu.pool`."""
    nvlink: bool = False
    """Whether the node label `gpu.topology/nvlink: "true"` is set (or required)."""
    node_class_ref: dict[str, str] | None = None
    """group, kind and name of Karpenter's node class, for mode karpenter."""
    topology_key: str | None = None
    """Node label that groups nodes which are near each other; a PD group is kept within one value."""
    tolerations: tuple[Toleration, ...] = ()
    cost_per_chip_hour: float | None = Field(default=None, ge=0)
    """Yuan a chip and hour; the chip profile's figure when not given."""
