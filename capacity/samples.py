"""The latest sample of every engine pod, and the values that are served from it."""

from collections.abc import Callable
from dataclasses import dataclass

from capacity.exposition import EngineSample
from capacity.pods import Pod
from capacity.window import HistogramWindow
from rules.metrics import served
from rules.scaling import SAMPLE_AGE_LIMIT_SECONDS

STUCK_SECONDS = 10.0
"""An engine that claims waiting requests for so long while none runs is not believed: a real one would run some."""


@dataclass(slots=True)
class _Entry:
    uid: str
    at: float
    wall: float
    sample: EngineSample
    ttft: HistogramWindow
    idle_queue_since: float | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """One served value and the wall-clock time of its scrape."""

    value: float
    wall: float


_VALUES: dict[str, Callable[[_Entry], float]] = {
    served.QUEUE_DEPTH: lambda entry: entry.sample.waiting,
    served.RUNNING: lambda entry: entry.sample.running,
    served.KV_UTILIZATION: lambda entry: entry.sample.kv_usage * 100,
    served.TTFT: lambda entry: entry.ttft.quantile(0.95),
}


class SampleBook:
    """Samples by pod. `now` is a steady clock everywhere; wall time is only ever shown."""

    def __init__(self, ttft_window: float) -> None:
        self._window = ttft_window
        self._entries: dict[str, _Entry] = {}

    def add(self, pod: Pod, sample: EngineSample, now: float, wall: float) -> None:
        """Remember a scrape; another pod of the same name (its uid differs) starts over."""
        entry = self._entries.get(pod.name)
        if entry is None or entry.uid != pod.uid:
            entry = self._entries[pod.name] = _Entry(pod.uid, now, wall, sample, HistogramWindow(self._window))
        entry.at, entry.wall, entry.sample = now, wall, sample
        entry.ttft.add(now, sample.ttft)
        stuck = sample.waiting > 0 and sample.running == 0
        entry.idle_queue_since = (entry.idle_queue_since or now) if stuck else None

    def keep_only(self, names: set[str]) -> None:
        """Forget pods that are gone."""
        for name in self._entries.keys() - names:
            del self._entries[name]

    def fresh(self, pod: Pod, now: float) -> EngineSample | None:
        """The pod's sample if it is Ready and its last scrape is recent and believable."""
        entry = self._believed(pod, now)
        return entry.sample if entry else None

    def value(self, pod: Pod, metric: str, now: float) -> Value | None:
        """What is served for a pod; None where the HPA has to do without. Raises KeyError for an unknown metric."""
        entry = self._believed(pod, now)
        return Value(_VALUES[metric](entry), entry.wall) if entry else None

    def _believed(self, pod: Pod, now: float) -> _Entry | None:
        entry = self._entries.get(pod.name)
        if entry is None or entry.uid != pod.uid or not pod.ready or now - entry.at > SAMPLE_AGE_LIMIT_SECONDS:
            return None
        if entry.idle_queue_since is not None and now - entry.idle_queue_since >= STUCK_SECONDS:
            return None
        return entry


def names() -> tuple[str, ...]:
    """The metrics that are served a pod."""
    return tuple(_VALUES)
