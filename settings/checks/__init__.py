"""Checks across groups: each takes the settings and returns problems; all of them run, so the user sees every problem at once."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules.problem import Problem
from settings.checks import (
    channel,
    exposure,
    gateway,
    images,
    keys,
    kthena,
    placement,
    rollout,
    scaling,
    serving,
    smoke,
    store,
)

if TYPE_CHECKING:
    from settings.settings import Settings

Check = Callable[["Settings"], list[Problem]]

CHECKS: Final[tuple[Check, ...]] = (
    *placement.CHECKS,
    *serving.CHECKS,
    *store.CHECKS,
    *kthena.CHECKS,
    *images.CHECKS,
    *channel.CHECKS,
    *exposure.CHECKS,
    *gateway.CHECKS,
    *keys.CHECKS,
    *scaling.CHECKS,
    *rollout.CHECKS,
    *smoke.CHECKS,
)
