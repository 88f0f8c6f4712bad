"""The load some minutes ahead: the level now, and what this time of day did on the days before.

Random bursts can't be foreseen; recurring ramps can. Extrapolating a line was worst in every trial on traces.
"""

import statistics
from collections.abc import Callable, Sequence

from capacity.plan.history import MINUTES_PER_DAY
from settings.autoscaling import PredictionSettings

Load = Sequence[float | None]
LEVEL_MINUTES = 3
AROUND_MINUTES = 3


def last_value(load: Load, ahead: int) -> float | None:
    """The load of the last minute; None without one."""
    return load[-1] if load else None


def same_time_of_day(load: Load, ahead: int, days: int = 4, q: float = 0.8) -> float | None:
    """The level of the last three minutes plus the q-quantile of what `ahead` minutes brought at this time on earlier days.

    Never below the last minute. None when one of the last three minutes is unknown: a gap changes nothing.
    """
    level = _mean(load[-LEVEL_MINUTES:]) if len(load) >= LEVEL_MINUTES else None
    if level is None or load[-1] is None:
        return None
    changes = []
    for day in range(1, days + 1):
        then = len(load) - day * MINUTES_PER_DAY
        if then < LEVEL_MINUTES:
            break
        before = _mean(load[then - LEVEL_MINUTES : then])
        after = load[then + ahead - 1 - AROUND_MINUTES : then + ahead + AROUND_MINUTES]
        known = [value for value in after if value is not None]
        if before is not None and known:
            changes.append(max(known) - before)
    return max(load[-1], level + _quantile(changes, q))


def forecaster(settings: PredictionSettings) -> Callable[[Load, int], float | None]:
    """The method that the settings name."""
    if settings.method == "lastValue":
        return last_value
    return lambda load, ahead: same_time_of_day(load, ahead, settings.history_days, settings.quantile)


def _mean(values: Load) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _quantile(values: list[float], q: float) -> float:
    """Linear interpolation between order statistics; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
