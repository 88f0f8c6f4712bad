"""What Moonstack knows about a kind of chip; one profile a file in this folder."""

from dataclasses import dataclass, field
from typing import Literal

Vendor = Literal["huawei", "nvidia", "xuantie", "cpu"]
Arch = Literal["amd64", "arm64", "riscv64"]
Connector = Literal["mooncake-store", "mooncake-v1", "mooncake", "nixl", "ascend-store", "lmcache", "layerwise", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStack:
    """How one driver stack names a chip: its extended resource and the node labels its device plugin sets."""

    name: str
    resource: str | None
    required_labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Label → accepted values; an empty tuple accepts any value. Required on nodes, never written by us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMount:
    """A file or folder of the host that an engine container needs, mounted read-only at the same path."""

    path: str
    kind: Literal["File", "Directory", "CharDevice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipProfile:
    """One kind of chip. Bandwidth in bytes a second, memory in bytes a chip, cost in yuan a chip and hour."""

    id: str
    title: str
    vendor: Vendor
    serves: bool
    """False: no engine is built for it, so its models go to the external channel."""
    stacks: tuple[DriverStack, ...]
    architectures: tuple[Arch, ...]
    connectors: tuple[Connector, ...]
    chips_per_pod: tuple[int, ...]
    """Numbers of chips that one pod may ask for."""
    domain_chips: int
    """Chips that are directly connected (NVLink, HCCS) within one node."""
    memory_bytes: int
    cost_per_hour: float
    load_bytes_per_second: int
    engine_start_seconds: int
    engine_image: str | None
    environment: dict[str, str] = field(default_factory=dict)
    mounts: tuple[HostMount, ...] = ()
    capabilities: tuple[str, ...] = ()

    def stack(self, name: str) -> DriverStack | None:
        """The driver stack of that name, or None."""
        return next((stack for stack in self.stacks if stack.name == name), None)
