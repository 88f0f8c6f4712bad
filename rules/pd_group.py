"""What the engines of one prefill/decode group must have in common."""

from collections.abc import Sequence
from dataclasses import dataclass

from rules.chips import ChipProfile, Connector, DriverStack
from rules.connectors import CONNECTORS
from rules.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One placement of a role: `path` is where the configuration says so; `chip` is the pool's chip."""

    path: str
    role: str
    chip: ChipProfile
    stack: DriverStack
    arch: str
    chips: int
    nodes: int
    tensor_parallel: int


def no_group_across_vendors(members: Sequence[Member]) -> list[Problem]:
    """No connector moves KV between vendors: vllm-ascend has none for it (vllm-project/vllm-ascend#16353)."""
    first = members[0]
    return [
        Problem(
            f"{member.path}.pool",
            member.chip.title,
            f"prefill and decode must be of one vendor, and {first.path} is on {first.chip.title}",
            "place both on chips of one vendor, or serve the model aggregated on each",
        )
        for member in members[1:]
        if member.chip.vendor != first.chip.vendor
    ]


def no_group_on_slices(members: Sequence[Member]) -> list[Problem]:
    """MIG slices have no peer-to-peer transfers between them (NVIDIA/k8s-device-plugin, MIG strategies)."""
    return [
        Problem(
            f"{member.path}.pool",
            member.stack.name,
            "prefill/decode disaggregation doesn't work on MIG slices",
            "use a pool of whole chips, or shape aggregated",
        )
        for member in members
        if member.stack.partitioned
    ]


def parallel_fits_the_chips(member: Member) -> list[Problem]:
    """A pod asks for exactly the chips that its engine uses: volcano-sh/kthena's own example asks for 4 and uses 2."""
    chips = member.chips * member.nodes
    if member.chips == 0 or member.tensor_parallel == chips:
        return []
    return [
        Problem(
            f"{member.path}.tensorParallel",
            member.tensor_parallel,
            f"the instance has {member.nodes} × {member.chips} = {chips} chips",
            "make them equal, or leave tensorParallel out",
        )
    ]


def chips_per_pod_exist(member: Member) -> list[Problem]:
    """Whole-card scheduling hands out 1, 2, 4 or 8 connected chips (MindCluster, B8)."""
    if not member.chip.serves or member.chips in member.chip.chips_per_pod:
        return []
    counts = ", ".join(map(str, member.chip.chips_per_pod))
    return [
        Problem(f"{member.path}.chips", member.chips, f"a pod on {member.chip.title} takes {counts} chips", "use one")
    ]


def prefill_is_a_multiple_of_decode(members: Sequence[Member], connector: Connector) -> list[Problem]:
    """MooncakeConnectorV1 maps each decode rank to prefill ranks: prefill's tensor parallel size is a multiple of decode's.

    Source: vllm-project/vllm-ascend, `kv_p2p/mooncake_connector.py`; both sides must also be told the same sizes.
    """
    if connector != "mooncake-v1":
        return []
    prefill = [member for member in members if member.role == "prefill"]
    decode = [member for member in members if member.role == "decode"]
    return [
        Problem(
            f"{one.path}.chips",
            one.tensor_parallel,
            f"must be a multiple of decode's tensor parallel size, and {other.path} has {other.tensor_parallel}",
            "change one of them",
        )
        for one in prefill
        for other in decode
        if one.tensor_parallel % other.tensor_parallel
    ]


def one_size_a_role(members: Sequence[Member], connector: Connector) -> list[Problem]:
    """A peer-to-peer connector is told one size a role, so all placements of a role have that size."""
    if not CONNECTORS[connector].peer_to_peer:
        return []
    first: dict[str, Member] = {}
    problems = []
    for member in members:
        leader = first.setdefault(member.role, member)
        if leader.tensor_parallel != member.tensor_parallel:
            problems.append(
                Problem(
                    f"{member.path}.chips",
                    member.tensor_parallel,
                    f"{connector} knows one tensor parallel size a role, and {leader.path} has {leader.tensor_parallel}",
                    "use equal sizes, or a store connector",
                )
            )
    return problems


def weights_fit_the_chips(member: Member, weights_bytes: int) -> list[Problem]:
    """Weights are spread over the instance's chips and leave a tenth of their memory to KV and activations."""
    memory = member.chips * member.nodes * member.chip.memory_bytes
    if not memory or weights_bytes <= 0.9 * memory:
        return []
    return [
        Problem(
            f"{member.path}.chips",
            member.chips,
            f"weights of {weights_bytes / 2**30:.0f}Gi don't fit 90 % of {memory / 2**30:.0f}Gi on {member.nodes} × {member.chips} chips",
            "use more chips or nodes, or a quantised revision",
        )
    ]


def dtype_exists(path: str, dtype: str, chip: ChipProfile) -> list[Problem]:
    """The chip computes in the data type: the Ascend 310P has no bfloat16."""
    if dtype in chip.dtypes or not chip.serves:
        return []
    return [Problem(path, dtype, f"{chip.title} computes in {', '.join(chip.dtypes)}", "choose one of them")]


def chip_serves(member: Member) -> list[Problem]:
    """There is an engine for the chip; XuanTie hosts take the external channel instead (A6)."""
    if member.chip.serves:
        return []
    return [
        Problem(
            f"{member.path}.pool",
            member.chip.title,
            "no engine is built for this chip",
            "remove the role; models with this affinity go to the external channel",
        )
    ]


def block_size_fits(path: str, block_size: int, chip: ChipProfile) -> list[Problem]:
    """The chip's attention kernel takes KV blocks of certain sizes; another one ends the engine long after it started."""
    step = chip.block_size_step
    if block_size % step == 0:
        return []
    return [
        Problem(path, block_size, f"{chip.title} takes multiples of {step}", f"use {(block_size // step + 1) * step}")
    ]
