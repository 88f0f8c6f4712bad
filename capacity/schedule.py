"""When each pod is scraped: on a grid of its own, so that pods are spread over the interval and no delay adds up."""

import heapq
import math
from collections.abc import Iterable
from typing import Final

_GOLDEN: Final = (5**0.5 - 1) / 2
"""Multiples of it, taken modulo 1, divide a circle about evenly however many there are."""


class Schedule:
    """Due times by pod in seconds of a steady clock; it has no clock of its own.

    A new pod is due at once, and from then on at its own phase of the interval. Whoever comes late with a pod finds it due
    once, not as often as was missed, and its next time is where it would have been.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._phases: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._made = 0

    def keep(self, names: Iterable[str], now: float) -> None:
        """These pods and no others; the ones not known before are due now."""
        wanted = set(names)
        for name in self._phases.keys() - wanted:
            del self._phases[name]
            self._heap = [entry for entry in self._heap if entry[1] != name]
        for name in sorted(wanted - self._phases.keys()):
            self._phases[name] = self._interval * (self._made * _GOLDEN % 1)
            self._made += 1
            self._heap.append((now, name))
        heapq.heapify(self._heap)

    def due(self, now: float) -> list[str]:
        """The pods whose time has come, the longest overdue first; each one's next time is set."""
        ready = []
        while self._heap and self._heap[0][0] <= now:
            _, name = self._heap[0]
            heapq.heapreplace(self._heap, (self._next(self._phases[name], now), name))
            ready.append(name)
        return ready

    def wait(self, now: float) -> float:
        """Seconds until the next pod is due; a whole interval without pods."""
        return max(0.0, self._heap[0][0] - now) if self._heap else self._interval

    def _next(self, phase: float, now: float) -> float:
        """The first time of the pod's grid after `now`."""
        at = (math.floor((now - phase) / self._interval) + 1) * self._interval + phase
        return at if at > now else at + self._interval
