"""Pods that hold the store's memory: which transports they can serve, and how much memory they need.

Mooncake's own `mooncake_client` mounts a segment for engines that lend none (vLLM's mode `standalone-store`).
"""

from typing import Final

from rules.chips import Protocol
from rules.problem import Problem
from rules.quantity import to_bytes

OVERHEAD: Final = 512 * 2**20
"""Memory of a store pod beside its segment, in bytes: 57 MB measured without traffic (0.3.13), and buffers of connections."""
_MEBIBYTE: Final = 2**20


def hold(protocol: Protocol) -> bool:
    """Whether store pods can hold a store of this transport.

    Over `ascend` the process that lends memory needs a chip and its driver (kvcache-ai/Mooncake#1854), so engines hold that one.
    """
    return protocol != "ascend"


def memory_limit(segment: str) -> str:
    """The memory limit of a pod that lends a segment, as a quantity in whole Mi."""
    return f"{-(-(to_bytes(segment) + OVERHEAD) // _MEBIBYTE)}Mi"


def segment_fits(path: str, memory: str, segment: str) -> list[Problem]:
    """A pod's segment and its process fit its memory limit: the segment fills up as the cache does, long after the pod was Ready."""
    if to_bytes(memory) >= to_bytes(segment) + OVERHEAD:
        return []
    limit = f"segment {segment} and 512Mi for the process exceed the memory limit"
    fix = f"raise it to at least {memory_limit(segment)}, or leave it out"
    return [Problem(f"{path}.memory", memory, limit, fix)]


def some_store_can_have_them(path: str, protocols: tuple[Protocol, ...]) -> list[Problem]:
    """Store pods that no store of the stack can have would be accepted and ignored."""
    if any(hold(protocol) for protocol in protocols):
        return []
    if not protocols:
        return [Problem(path, None, "no engine of the stack joins a store", "remove it, or give a model a store")]
    limit = "every store here is over ascend, where whoever lends memory needs a chip (kvcache-ai/Mooncake#1854)"
    return [Problem(path, None, limit, "remove it: the engines hold the store")]


def rdma_is_within_reach(
    path: str, protocols: tuple[Protocol, ...], pool: str | None, resource: str | None
) -> list[Problem]:
    """Over RDMA a pod must be given the host's device, else its process ends at once with `No RDMA devices`."""
    if "rdma" not in protocols or resource:
        return []
    if pool is None:
        return [Problem(f"{path}.pool", None, "a store over RDMA needs nodes with RDMA devices", "name such a pool")]
    limit = f"a store over RDMA needs the devices of its nodes, and pool {pool} names no rdmaResource"
    return [Problem(f"{path}.pool", pool, limit, "set nodePools[].rdmaResource, such as rdma/hca_shared_devices_a")]


def pool_has_room(path: str, pool: str, there: int, engines: int, stores: int) -> list[Problem]:
    """The memory of a pool's nodes holds what engines request there and the store pods; all in bytes."""
    if engines + stores <= there:
        return []
    gib = [f"{each / 2**30:.0f}Gi" for each in (stores, engines, there)]
    limit = f"store pods take {gib[0]}, engines {gib[1]}, and the nodes of pool {pool} have {gib[2]}"
    return [Problem(path, pool, limit, "lower replicas or segment, or choose another pool")]
