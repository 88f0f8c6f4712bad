"""The predictive floor: how many replicas a load needs, and how fast a floor may move."""

import math
from dataclasses import dataclass
from typing import Final

RENEWAL_LIMIT_SECONDS: Final = 600
"""A floor whose renewal is older is lowered by the CronJob: a dead controller pins nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A floor escapes the HPA's policies in both directions, so it keeps its own."""

    up_pods: int
    up_period_seconds: float = 60
    down_pods: int = 1
    down_period_seconds: float = 120
    """An HPA drops by a whole surge when its floor falls within its scale-down period after a raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What stands in `minReplicas`; `changed` is when it last moved (seconds of any steady clock)."""

    replicas: int
    changed: float
    raised: int = 0
    """Pods added since `period_start`."""
    period_start: float = 0.0
    clamped: bool = False


def needed(load: float, margin_percent: float, per_pod: float) -> int:
    """Replicas for a forecast load with its margin (A13: 20 %)."""
    return math.ceil(load * (1 + margin_percent / 100) / per_pod - 1e-9)


def step(floor: Floor, wanted: int, low: int, high: int, pace: Pace, now: float) -> Floor:
    """The next floor towards `wanted`, within bounds and pace; the same floor where it must not move yet.

    A floor above `maxReplicas` is refused by the API server as a whole, so it is clamped and says so.
    """
    clamped = wanted > high
    target = min(max(wanted, low), high)
    if target > floor.replicas:
        fresh = now - floor.period_start >= pace.up_period_seconds
        raised = 0 if fresh else floor.raised
        by = min(target - floor.replicas, pace.up_pods - raised)
        if by > 0:
            start = now if fresh else floor.period_start
            return Floor(
                replicas=floor.replicas + by, changed=now, raised=raised + by, period_start=start, clamped=clamped
            )
    elif target < floor.replicas and (now - floor.changed >= pace.down_period_seconds or floor.replicas > high):
        lowered = min(max(target, floor.replicas - pace.down_pods), high)
        return Floor(replicas=lowered, changed=now, period_start=floor.period_start, clamped=clamped)
    return Floor(
        replicas=floor.replicas,
        changed=floor.changed,
        raised=floor.raised,
        period_start=floor.period_start,
        clamped=clamped,
    )
