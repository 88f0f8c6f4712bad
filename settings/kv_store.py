"""The Mooncake store that all engines of the stack share."""

from typing import Literal

from pydantic import Field, model_validator

from settings.base import Group, HostPort, Quantity


class StoreElection(Group):
    """Several masters a store, one of which leads: the others take over when it is gone (measured: 11 s)."""

    etcd: tuple[HostPort, ...]
    """Your etcd, where they elect and clients look the leader up, as host:port; plain HTTP, as the master has no flags for credentials."""
    masters: int = Field(default=2, ge=2, le=5)
    """Masters of each store."""

    @model_validator(mode="after")
    def _some_etcd(self) -> "StoreElection":
        if not self.etcd:
            raise ValueError("etcd is empty; name at least one host:port, or remove ha")
        return self


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
    ha: StoreElection | None = None
    """Several masters instead of one; without it a lost master is a new, empty one after a few seconds."""
    lease_ttl_ms: int = Field(default=10_000, ge=1000)
    """How long an object that is being read can't be evicted."""
