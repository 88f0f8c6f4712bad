"""The HorizontalPodAutoscaler's own behaviour: tolerance, windows, policies (kubernetes/kubernetes `pkg/controller/podautoscaler`)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rules.scaling import HPA_SYNC_SECONDS, Behaviour, recommendation


@dataclass
class HpaModel:
    """One HPA; ask it every `sync` seconds. `low` may be moved from outside, as a predictive floor does."""

    low: int
    high: int
    up: Behaviour
    down: Behaviour
    sync: float = HPA_SYNC_SECONDS
    _recommended: deque[tuple[float, int]] = field(default_factory=deque)
    _changes: deque[tuple[float, int]] = field(default_factory=deque)

    def decide(self, now: float, replicas: int, averages: Sequence[tuple[float, float]]) -> int:
        """The replicas that it sets. Minimum and maximum come first and escape windows and policies."""
        if replicas < self.low or replicas > self.high:
            return self._set(now, replicas, min(max(replicas, self.low), self.high))
        asked = recommendation(replicas, averages)
        self._recommended.append((now, asked))
        longest = max(self.up.window_seconds, self.down.window_seconds)
        while self._recommended and self._recommended[0][0] <= now - longest - self.sync:
            self._recommended.popleft()
        lowest = min(n for at, n in self._recommended if at >= now - self.up.window_seconds)
        highest = max(n for at, n in self._recommended if at >= now - self.down.window_seconds)
        steady = min(max(replicas, lowest), highest)
        if steady > replicas:
            steady = min(steady, max(replicas, self._started_with(now, replicas, self.up) + self.up.pods))
        elif steady < replicas:
            steady = max(steady, min(replicas, self._started_with(now, replicas, self.down) - self.down.pods))
        return self._set(now, replicas, min(max(steady, self.low), self.high))

    def _started_with(self, now: float, replicas: int, policy: Behaviour) -> int:
        """Replicas at the start of the policy's period: pods added within it are not protected from removal."""
        return replicas - sum(by for at, by in self._changes if at > now - policy.period_seconds)

    def _set(self, now: float, before: int, after: int) -> int:
        if after != before:
            self._changes.append((now, after - before))
        longest = max(self.up.period_seconds, self.down.period_seconds)
        while self._changes and self._changes[0][0] <= now - longest:
            self._changes.popleft()
        return after
