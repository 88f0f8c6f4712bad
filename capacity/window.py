"""Rates and percentiles over the last seconds, from counters and histograms that only ever grow."""

import math
from collections import deque

from capacity.exposition import Buckets


class CounterWindow:
    """Keeps one count per scrape for `seconds`; a restart (the count falls) starts over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: deque[tuple[float, float]] = deque()

    def add(self, now: float, count: float) -> None:
        """Remember the count scraped at `now` (seconds of a steady clock)."""
        if self._kept and count < self._kept[-1][1]:
            self._kept.clear()
        self._kept.append((now, count))
        while len(self._kept) > 2 and self._kept[1][0] <= now - self._seconds:
            self._kept.popleft()

    def rate(self) -> float:
        """Per second over the window; 0 until there are two scrapes."""
        (first_at, first), (last_at, last) = self._kept[0], self._kept[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


class HistogramWindow:
    """Keeps one histogram per scrape for `seconds`; a restart of the engine (counts fall) starts over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: deque[tuple[float, Buckets]] = deque()

    def add(self, now: float, buckets: Buckets) -> None:
        """Remember the histogram scraped at `now` (seconds of a steady clock)."""
        if self._kept and (
            _total(buckets) < _total(self._kept[-1][1]) or _bounds(buckets) != _bounds(self._kept[-1][1])
        ):
            self._kept.clear()
        self._kept.append((now, buckets))
        while len(self._kept) > 2 and self._kept[1][0] <= now - self._seconds:
            self._kept.popleft()

    def quantile(self, q: float) -> float:
        """The q-quantile of what was observed within the window; 0 when nothing was."""
        if len(self._kept) < 2:
            return 0.0
        first, last = self._kept[0][1], self._kept[-1][1]
        grown = tuple((bound, count - before) for (bound, count), (_, before) in zip(last, first, strict=True))
        return quantile(grown, q)


def quantile(buckets: Buckets, q: float) -> float:
    """Linear interpolation within the bucket, as Prometheus does; the last finite bound for what lies beyond it."""
    total = _total(buckets)
    if total <= 0:
        return 0.0
    rank, low, below = q * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if math.isinf(bound):
                return low
            return low + (bound - low) * (rank - below) / (count - below) if count > below else bound
        low, below = bound, count
    return low


def _total(buckets: Buckets) -> float:
    return buckets[-1][1] if buckets else 0.0


def _bounds(buckets: Buckets) -> tuple[float, ...]:
    return tuple(bound for bound, _ in buckets)
