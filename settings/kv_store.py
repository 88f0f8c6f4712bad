"""The Mooncake store that all engines of the stack share."""

from typing import Literal

from pydantic import Field, model_validator

from rules import store_pods as pods_rules
from rules.chips import Protocol
from settings.base import Bytes, Cpu, DnsLabel, Group, HostPort


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


class StorePods(Group):
    """Pods that hold the store's memory beside the engines: what is in them outlives restarts and rollouts of engines."""

    replicas: int = Field(default=2, ge=1, le=256)
    """Pods of each store; the loss of one costs its share of the cache."""
    segment: Bytes
    """Memory that each pod lends to the store."""
    memory: Bytes | None = None
    """Memory limit of each pod; the segment and 512Mi when not given."""
    cpu: Cpu = "1"
    """CPU request of each pod."""
    pool: DnsLabel | None = None
    """The node pool whose nodes run them, with its labels and tolerations; any node when not given. They ask for no chips."""
    engine_segments: bool = False
    """Whether engines go on lending `kvStore.segment` as well; what lies there goes with its engine."""

    @property
    def memory_limit(self) -> str:
        """The memory limit as given, or the segment and what the process needs."""
        return self.memory or pods_rules.memory_limit(self.segment)


class KvStoreSettings(Group):
    """The Mooncake store: a master, and segments lent by engines or by pods of their own."""

    enabled: bool = True
    """Whether a store is declared."""
    segment: Bytes = "1Gi"
    """Memory that each engine lends to the store, per card; none where `storePods` hold the store."""
    buffer: Bytes = "1Gi"
    """Transfer buffer of each engine."""
    protocol: Literal["tcp", "rdma", "ascend"] = "tcp"
    """Transport of the stack's first store; chips with another one get a store of their own."""
    device: str = ""
    """RDMA device names, empty for TCP and Ascend."""
    client_ttl_seconds: int = Field(default=10, ge=1, le=86_400)
    """After this silence the master forgets a client's segments."""
    ha: StoreElection | None = None
    """Several masters instead of one; without it a lost master is a new, empty one after a few seconds."""
    store_pods: StorePods | None = None
    """Memory in pods of its own, for stores over TCP and RDMA; without it engines lend all of it."""
    lease_ttl_ms: int = Field(default=10_000, ge=1000, le=86_400_000)
    """How long an object that is being read can't be evicted."""

    def pods_of(self, protocol: Protocol) -> StorePods | None:
        """The store pods of one transport; none over a transport that runs on chips alone."""
        return self.store_pods if pods_rules.hold(protocol) else None

    def engines_lend(self, protocol: Protocol) -> bool:
        """Whether engines lend memory to the store of a transport."""
        pods = self.pods_of(protocol)
        return pods is None or pods.engine_segments

    def engine_segment(self, protocol: Protocol) -> str:
        """What each card of an engine lends to the store of a transport."""
        return self.segment if self.engines_lend(protocol) else "0"
