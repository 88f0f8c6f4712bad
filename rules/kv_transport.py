"""How KV moves: the store's transport by chip, the handshake port of peer-to-peer connectors, and the memory lent to the store."""

from collections.abc import Sequence
from typing import Final

from rules.chips import ChipProfile, Protocol
from rules.problem import Problem
from rules.quantity import to_bytes

HANDSHAKE_BASE: Final = 28_000
"""vllm-ascend's guide asks for at least this with eight chips, and for 36000 with sixteen (vllm-project/vllm-ascend#6455)."""
NIXL_SIDE_CHANNEL: Final = 5600
MOONCAKE_RPC_PORTS: Final = range(15_000, 17_001)
"""Mooncake picks its RPC ports from here at random (MC_MIN_RPC_PORT, MC_MAX_RPC_PORT)."""
NODE_PORTS: Final = range(30_000, 32_768)
SEGMENT_STEP: Final = 2**30
"""Ascend's store takes segments in whole GiB."""
_TRANSFER_TIMEOUTS: Final = frozenset({"ASCEND_CONNECT_TIMEOUT", "ASCEND_TRANSFER_TIMEOUT"})
ENGINE_FLOOR: Final = 2 * 2**30
"""Host memory of an engine without its segments and transfer buffer: 2.8 GB measured with a KV space of 1 GB, 1.7 without."""


def store_protocol(preferred: Protocol, chip: ChipProfile) -> Protocol:
    """The transport that a chip's engines use: the preferred one where the chip speaks it, else the chip's first."""
    return preferred if preferred in chip.protocols else chip.protocols[0]


def protocol_is_spoken(path: str, preferred: Protocol, chips: Sequence[ChipProfile]) -> list[Problem]:
    """The preferred transport must be one that some chip with a share in the store speaks: vllm-ascend raises on all but `ascend`."""
    spoken = sorted({protocol for chip in chips for protocol in chip.protocols})
    if not chips or preferred in spoken:
        return []
    titles = ", ".join(chip.title for chip in chips)
    return [Problem(path, preferred, f"the engines for {titles} speak {', '.join(spoken)}", "choose one of them")]


def default_kv_port(chip: ChipProfile, chips_per_node: int) -> int:
    """The handshake base port: NIXL's own, or one above the chip's transport range on a host with that many chips."""
    if chip.transport_ports is None:
        return NIXL_SIDE_CHANNEL
    return max(HANDSHAKE_BASE, chip.transport_ports.first_free(chips_per_node))


def kv_port_is_free(path: str, port: int, span: int, chip: ChipProfile, chips_per_node: int) -> list[Problem]:
    """A peer-to-peer connector listens on `span` consecutive ports; none may lie where another part picks ports at random.

    20001 and 20002, as in published examples, lie inside the Ascend transport's range: engines then fail to start now and then
    (vllm-project/vllm-ascend#8938, #4725).
    """
    wanted = range(port, port + span)
    fix = f"use {default_kv_port(chip, chips_per_node)} or leave it out"
    claimed = {"Mooncake's RPC ports": MOONCAKE_RPC_PORTS, "NodePorts": NODE_PORTS}
    if chip.transport_ports is not None:
        transport = range(chip.transport_ports.base, chip.transport_ports.first_free(chips_per_node))
        claimed[f"the transport of {chip.title} on a host with {chips_per_node} chips"] = transport
    problems = [
        Problem(path, port, f"ports {port} to {wanted[-1]} meet {taken[0]} to {taken[-1]} of {owner}", fix)
        for owner, taken in claimed.items()
        if wanted.start < taken.stop and taken.start < wanted.stop
    ]
    if wanted[-1] > 65_535:
        problems.append(Problem(path, port, f"{span} ports from here pass 65535", fix))
    return problems


def segments_fit(path: str, memory: str, segment: str, buffer: str, chips: int) -> list[Problem]:
    """Each chip's worker lends a segment and holds a buffer; with the engine they must fit the pod's memory limit.

    Source: vllm-ascend's KV pool guide (`global_segment_size` is per card) and kvcache-ai/Mooncake#1382.
    """
    workers = max(1, chips)
    lent = workers * (to_bytes(segment) + to_bytes(buffer))
    limit = to_bytes(memory)
    if lent + ENGINE_FLOOR <= limit:
        return []
    gib = (lent + ENGINE_FLOOR) / 2**30
    return [
        Problem(
            path,
            memory,
            f"{workers} × (segment {segment} + buffer {buffer}) + 2Gi for the engine = {gib:.1f}Gi exceed the memory limit",
            f"raise memory to at least {int(-(-gib // 1))}Gi, or lower kvStore.segment",
        )
    ]


def segment_is_whole(segment: str, protocol: Protocol) -> list[Problem]:
    """With the Ascend transport, segments are multiples of 1 GiB (vllm-ascend's KV pool guide)."""
    if protocol != "ascend" or (to_bytes(segment) and to_bytes(segment) % SEGMENT_STEP == 0):
        return []
    return [Problem("kvStore.segment", segment, "the Ascend transport takes whole GiB only", "use a multiple of 1Gi")]


def lease_outlives_transfers(lease_ms: int, chip: ChipProfile) -> list[Problem]:
    """A lease that ends during a transfer fails the read: it must exceed the chip's connect and transfer timeouts.

    Source: vllm-ascend's KV pool guide (`default_kv_lease_ttl`).
    """
    timeouts = {name: int(value) for name, value in chip.environment.items() if name in _TRANSFER_TIMEOUTS}
    longest = max(timeouts, key=lambda name: timeouts[name], default=None)
    if longest is None or lease_ms > timeouts[longest]:
        return []
    limit = f"must exceed {longest} of {chip.title}, {timeouts[longest]} ms"
    return [Problem("kvStore.leaseTtlMs", lease_ms, limit, f"use {timeouts[longest] + 1000} or more")]
