"""The Mooncake store that all engines of the stack share."""

from typing import Literal

from pydantic import Field

from settings.base import Group, Quantity


class KvStoreSettings(Group):
    """The Mooncake store: a master, and segments lent by engines."""

    enabled: bool = True
    """Whether a store is declared."""
    segment: Quantity = "1Gi"
    """Memory that each engine lends to the store, per card."""
    buffer: Quantity = "1Gi"
    """Transfer buffer of each engine."""
    protocol: Literal["tcp", "rdma", "ascend"] = "tcp"
    """Transport of the stack's first store; chips with another one get a store of their own."""
    device: str = ""
    """RDMA device names, empty for TCP and Ascend."""
    client_ttl_seconds: int = Field(default=10, ge=1)
    """After this silence the master forgets a client's segments."""
    lease_ttl_ms: int = Field(default=10_000, ge=1000)
    """How long an object that is being read can't be evicted."""
