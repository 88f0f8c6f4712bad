"""The checks, one concern a file; each takes the settings and the inventory and returns findings."""

from collections.abc import Callable
from typing import Final

from settings.settings import Settings
from smoke.doctor.diagnosis import Finding
from smoke.preflight.checks import basics, operators, placing, pools, storage, store
from smoke.preflight.inventory import Inventory

Check = Callable[[Settings, Inventory], list[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    *basics.CHECKS,
    *pools.CHECKS,
    *operators.CHECKS,
    *placing.CHECKS,
    *storage.CHECKS,
    *store.CHECKS,
)


def judge(settings: Settings, inventory: Inventory) -> list[Finding]:
    """Every finding, errors first."""
    found = [finding for check in CHECKS for finding in check(settings, inventory)]
    return sorted(found, key=lambda one: ("error", "warning", "info").index(one.severity))
