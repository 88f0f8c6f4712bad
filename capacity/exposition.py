"""One scrape of an engine's /metrics: the four signals that scaling needs, checked against the catalogue."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from capacity.series import Unreadable, series_of
from rules.metrics import ENGINES, Catalogue, Engine, EngineSignals

Buckets = tuple[tuple[float, float], ...]
"""(upper bound, cumulative count), ascending."""


GATEWAY_REQUESTS = 'envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="gateway"}'


class BadSample(Exception):
    """The engine answered something that can't be true; `reason` is one word for a metric's label."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class EngineSample:
    """Requests waiting for capacity and running, share of the KV cache in use (0 to 1), cumulative TTFT histogram."""

    waiting: float
    running: float
    kv_usage: float
    ttft: Buckets = field(default=())

    @property
    def in_flight(self) -> float:
        """Requests waiting or running."""
        return self.waiting + self.running


def parse(text: str, engine: Engine) -> EngineSample:
    """The signals of an engine. Series of several engine cores in one pod add up, ratios take the fullest. Raises BadSample."""
    catalogue, signals = ENGINES[engine]
    series = _wanted(text, signals)
    waiting = series.get("waiting_by_reason") or series.get("waiting")
    running, kv_usage = series.get("running"), series.get("kv_usage")
    if waiting is None or running is None or kv_usage is None:
        raise BadSample("missing", "the page lacks a metric that every engine exposes once it has started")
    for name, values in ((signals.waiting, waiting), (signals.running, running), (signals.kv_usage, kv_usage)):
        _check(catalogue, name, values)
    return EngineSample(sum(waiting), sum(running), max(kv_usage), _buckets(series.get("ttft", [])))


def gateway_requests(text: str) -> float:
    """Requests that a gateway pod has taken on its data port so far. Raises BadSample."""
    counted = 0.0
    for line in text.splitlines():
        if line.startswith(GATEWAY_REQUESTS):
            try:
                counted += float(line.rpartition(" ")[2])
            except ValueError:
                raise BadSample("unreadable", f"no number: {line[:100]}") from None
    if math.isnan(counted) or counted < 0:
        raise BadSample("range", f"the gateway has taken {counted} requests")
    return counted


def _wanted(text: str, signals: EngineSignals) -> dict[str, list]:
    """Values by signal."""
    names = {
        signals.waiting: "waiting",
        signals.running: "running",
        signals.kv_usage: "kv_usage",
        f"{signals.ttft}_bucket": "ttft",
    }
    if signals.waiting_by_reason:
        names[signals.waiting_by_reason] = "waiting_by_reason"
    found: dict[str, list] = {}
    try:
        for name, signal in names.items():
            for labels, value in series_of(text, name):
                if signal == "ttft":
                    found.setdefault(signal, []).append((float(labels["le"]), value))
                elif signal != "waiting_by_reason" or labels.get("reason") == "capacity":
                    found.setdefault(signal, []).append(value)
    except (Unreadable, ValueError, KeyError) as error:
        raise BadSample("unreadable", f"the page can't be read: {error}") from None
    return found


def _check(catalogue: Catalogue, name: str, values: Iterable[float]) -> None:
    metric = catalogue.find(name)
    if metric is None:
        raise LookupError(f"{catalogue.program} {catalogue.version} has no {name}")
    for value in values:
        if not metric.holds(value):
            raise BadSample("range", f"{name} is {value}, outside {metric.low:g} to {metric.high:g}")


def _buckets(pairs: Iterable[tuple[float, float]]) -> Buckets:
    sums: dict[float, float] = {}
    for bound, count in pairs:
        if math.isnan(count) or count < 0:
            raise BadSample("range", f"a bucket of the TTFT histogram counts {count}")
        sums[bound] = sums.get(bound, 0.0) + count
    return tuple(sorted(sums.items()))
