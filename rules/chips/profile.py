"""What Moonstack knows about a kind of chip; one profile a file in this folder."""

from dataclasses import dataclass, field
from typing import Literal

Vendor = Literal["huawei", "nvidia", "xuantie", "cpu"]
Arch = Literal["amd64", "arm64", "riscv64"]
Connector = Literal["mooncake-store", "mooncake-v1", "mooncake", "nixl", "ascend-store", "lmcache", "layerwise", "none"]
Protocol = Literal["tcp", "rdma", "ascend"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStack:
    """How one driver stack names a chip: its extended resource and the node labels its device plugin sets."""

    name: str
    resource: str | None
    required_labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Label → accepted values; an empty tuple accepts any value. Required on nodes, never written by us."""
    partitioned: bool = False
    """The resource is a slice of a chip (MIG), so no pod of it takes part in prefill/decode disaggregation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMount:
    """A file or folder of the host that an engine container needs, mounted read-only at the same path."""

    path: str
    kind: Literal["File", "Directory", "CharDevice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRange:
    """Ports that a transport picks from at random: `base` and the `per_chip` following ones for each chip of the host."""

    base: int
    per_chip: int

    def first_free(self, chips: int) -> int:
        """The first port above the range on a host with `chips` chips."""
        return self.base + self.per_chip * chips


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
    protocols: tuple[Protocol, ...] = ("tcp",)
    """Transports of the Mooncake store that the chip's engine can speak."""
    dtypes: tuple[str, ...] = ("auto", "bfloat16", "float16", "float32")
    chips_per_pod: tuple[int, ...]
    """Numbers of chips that one pod may ask for."""
    domain_chips: int
    """Chips that are directly connected (NVLink, HCCS) within one node."""
    memory_bytes: int
    cost_per_hour: float
    load_bytes_per_second: int
    engine_start_seconds: int
    engine_image: str | None
    block_size_step: int = 1
    """An engine's KV block size is a multiple of this."""
    transport_ports: PortRange | None = None
    """Ports that the chip's own transport claims on a host; a KV handshake port must lie outside."""
    environment: dict[str, str] = field(default_factory=dict)
    pod_ip_variables: tuple[str, ...] = ()
    """Environment variables that must hold the pod's address."""
    mounts: tuple[HostMount, ...] = ()
    capabilities: tuple[str, ...] = ()
    shared_memory: str = "1Gi"
    """Size of /dev/shm, through which the workers of one engine talk."""

    def stack(self, name: str) -> DriverStack | None:
        """The driver stack of that name, or None."""
        return next((stack for stack in self.stacks if stack.name == name), None)
