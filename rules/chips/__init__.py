"""The chip catalogue: one profile a file, all of them here by id."""

from typing import Final

from rules.chips.ascend_910b import ASCEND_910B
from rules.chips.cpu import CPU
from rules.chips.profile import Arch, ChipProfile, Connector, DriverStack, HostMount, Vendor

CHIPS: Final[dict[str, ChipProfile]] = {profile.id: profile for profile in (ASCEND_910B, CPU)}

__all__ = ["CHIPS", "Arch", "ChipProfile", "Connector", "DriverStack", "HostMount", "Vendor"]
