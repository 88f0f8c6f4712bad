"""The chip catalogue: one profile a file, all of them here by id."""

from typing import Final

from rules.chips.ascend_310p import ASCEND_310P
from rules.chips.ascend_910b import ASCEND_910B
from rules.chips.cpu import CPU
from rules.chips.nvidia_a100 import NVIDIA_A100
from rules.chips.nvidia_h100 import NVIDIA_H100
from rules.chips.profile import Arch, ChipProfile, Connector, DriverStack, HostMount, PortRange, Protocol, Vendor
from rules.chips.xuantie_c910 import XUANTIE_C910

CHIPS: Final[dict[str, ChipProfile]] = {
    profile.id: profile for profile in (ASCEND_910B, ASCEND_310P, NVIDIA_H100, NVIDIA_A100, XUANTIE_C910, CPU)
}


def engine_chip(chip: str, build: str) -> ChipProfile:
    """The profile whose engine runs on a chip: its own, or the CPU's for build `cpu` (development). Raises KeyError."""
    return CHIPS["cpu"] if build == "cpu" else CHIPS[chip]


__all__ = [
    "CHIPS",
    "Arch",
    "ChipProfile",
    "Connector",
    "DriverStack",
    "HostMount",
    "PortRange",
    "Protocol",
    "Vendor",
    "engine_chip",
]
