"""What is known of one Prometheus metric, and of all metrics of one program version."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]
Unit = Literal["requests", "ratio", "percent", "seconds", "milliseconds", "tokens", "bytes", "pods", "pieces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric by its name on the wire (a counter with `_total`, a histogram without suffix)."""

    name: str
    kind: Kind
    unit: Unit
    labels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = math.inf
    note: str = ""

    def holds(self, value: float) -> bool:
        """Whether a sample of this metric can have the value; NaN never."""
        return self.low <= value <= self.high

    def series(self) -> tuple[str, ...]:
        """Names under which Prometheus stores the metric."""
        if self.kind == "histogram":
            return tuple(f"{self.name}{suffix}" for suffix in ("_bucket", "_sum", "_count"))
        return (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The metrics of one program, for one range of its versions."""

    program: str
    version: str
    metrics: tuple[Metric, ...]
    retired: Mapping[str, str] = field(default_factory=dict)
    """Names of older versions → what to use instead."""
    target_labels: tuple[str, ...] = ("namespace", "pod", "instance", "job", "container", "endpoint", "service")
    """Labels that Prometheus itself adds when it scrapes a pod."""

    def find(self, series: str) -> Metric | None:
        """The metric that a series name belongs to, or None."""
        return next((metric for metric in self.metrics if series in metric.series()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSignals:
    """Which metrics of an engine carry the four signals that scaling needs."""

    waiting: str
    running: str
    kv_usage: str
    ttft: str
    waiting_by_reason: str | None = None
    """Where served: waiting requests by reason; only `capacity` counts, since others wait by design."""
