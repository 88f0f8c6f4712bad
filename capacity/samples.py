"""The latest sample of every engine and gateway pod, and the values that are served from it."""

from dataclasses import dataclass, field

from capacity.exposition import EngineSample
from capacity.pods import Pod
from capacity.window import CounterWindow, HistogramWindow
from rules.metrics import served
from rules.scaling import SAMPLE_AGE_LIMIT_SECONDS

RATE_SECONDS = 10.0
STUCK_SECONDS = 10.0
"""An engine that claims waiting requests for so long while none runs is not believed: a real one would run some."""


@dataclass(slots=True)
class _Entry:
    uid: str
    at: float
    wall: float
    values: dict[str, float] = field(default_factory=dict)
    sample: EngineSample | None = None
    ttft: HistogramWindow | None = None
    requests: CounterWindow | None = None
    idle_queue_since: float | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """One served value and the wall-clock time of its scrape."""

    value: float
    wall: float


class SampleBook:
    """Samples by pod. `now` is a steady clock everywhere; wall time is only ever shown."""

    def __init__(self, ttft_window: float) -> None:
        self._window = ttft_window
        self._entries: dict[str, _Entry] = {}

    def add(self, pod: Pod, sample: EngineSample, now: float, wall: float) -> None:
        """Remember the scrape of an engine."""
        entry = self._entry(pod, now, wall)
        entry.ttft = entry.ttft or HistogramWindow(self._window)
        entry.ttft.add(now, sample.ttft)
        entry.sample = sample
        entry.values = {
            served.QUEUE_DEPTH: sample.waiting,
            served.RUNNING: sample.running,
            served.KV_UTILIZATION: sample.kv_usage * 100,
            served.TTFT: entry.ttft.quantile(0.95),
        }
        stuck = sample.waiting > 0 and sample.running == 0
        entry.idle_queue_since = (entry.idle_queue_since or now) if stuck else None

    def add_gateway(self, pod: Pod, requests: float, now: float, wall: float) -> None:
        """Remember the scrape of a gateway; to the planner its load is requests a second."""
        entry = self._entry(pod, now, wall)
        entry.requests = entry.requests or CounterWindow(RATE_SECONDS)
        entry.requests.add(now, requests)
        rate = entry.requests.rate()
        entry.values = {served.GATEWAY_QPS: rate}
        entry.sample = EngineSample(waiting=0.0, running=rate, kv_usage=0.0)

    def keep_only(self, names: set[str]) -> None:
        """Forget pods that are gone."""
        for name in self._entries.keys() - names:
            del self._entries[name]

    def fresh(self, pod: Pod, now: float) -> EngineSample | None:
        """The pod's sample if it is Ready and its last scrape is recent and believable."""
        entry = self._believed(pod, now)
        return entry.sample if entry else None

    def value(self, pod: Pod, metric: str, now: float) -> Value | None:
        """What is served for a pod; None where the HPA has to do without."""
        entry = self._believed(pod, now)
        if entry is None or metric not in entry.values:
            return None
        return Value(entry.values[metric], entry.wall)

    def _entry(self, pod: Pod, now: float, wall: float) -> _Entry:
        """The pod's entry; another pod of the same name (its uid differs) starts over."""
        entry = self._entries.get(pod.name)
        if entry is None or entry.uid != pod.uid:
            entry = self._entries[pod.name] = _Entry(pod.uid, now, wall)
        entry.at, entry.wall = now, wall
        return entry

    def _believed(self, pod: Pod, now: float) -> _Entry | None:
        entry = self._entries.get(pod.name)
        if entry is None or entry.uid != pod.uid or not pod.ready or now - entry.at > SAMPLE_AGE_LIMIT_SECONDS:
            return None
        if entry.idle_queue_since is not None and now - entry.idle_queue_since >= STUCK_SECONDS:
            return None
        return entry
