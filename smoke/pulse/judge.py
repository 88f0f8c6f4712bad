"""The three times and the criteria, from samples and moments alone."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smoke.load import Sample
from smoke.pulse.result import Criterion, Times
from smoke.pulse.watch import Moment

LAST_SECONDS: Final = 15.0
"""The end of the pulse that must look healthy again."""
KV_HIGH: Final = 0.9
KV_SETTLED: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Users and seconds: steady at `low`, a ramp to `high`, steady there, and at `low` again."""

    low: int
    high: int
    before: float
    ramp: float
    top: float
    after: float

    @property
    def seconds(self) -> float:
        """The whole pulse."""
        return self.before + self.ramp + self.top + self.after

    def users(self, at: float) -> int:
        """How many users there are at a time."""
        if at < self.before or at >= self.before + self.ramp + self.top:
            return self.low
        climbed = min(1.0, (at - self.before) / self.ramp) if self.ramp else 1.0
        return round(self.low + (self.high - self.low) * climbed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the scaler aims at: requests waiting on an engine, seconds to the first token."""

    queue: float
    ttft: float


def times(stages: Stages, targets: Targets, samples: Sequence[Sample], moments: Sequence[Moment]) -> Times:
    """Each time in seconds from the start of the ramp."""
    calm = [moment for moment in moments if moment.at <= stages.before]
    known = frozenset[str]().union(*(moment.busy_pods for moment in calm)) if calm else frozenset[str]()
    desired = max((moment.desired for moment in calm), default=0)
    late = [moment for moment in moments if moment.at > stages.before]
    over = [moment.at for moment in late if moment.queue > targets.queue]
    over += [
        s.began + s.first_token
        for s in samples
        if s.first_token and s.first_token > targets.ttft and s.began > stages.before
    ]
    decided = [moment.at for moment in late if calm and moment.desired > desired]
    serving = [
        moment.at for moment in late if calm and moment.busy_pods - known and moment.replicas > calm[-1].replicas
    ]
    return Times(
        metric_over_target=_since(stages, over),
        hpa_decision=_since(stages, decided),
        new_instance_serving=_since(stages, serving),
    )


def criteria(stages: Stages, targets: Targets, samples: Sequence[Sample], moments: Sequence[Moment]) -> list[Criterion]:
    """TTFT, queue and KV use at the end, and no request lost."""
    late = stages.seconds - LAST_SECONDS
    first = [sample.first_token for sample in samples if sample.ended >= late and sample.first_token is not None]
    last = [moment for moment in moments if moment.at >= late]
    lost = [sample for sample in samples if sample.outcome != "ok"]
    first_cause = next((sample.cause for sample in lost if sample.cause), "a stream broke off") if lost else ""
    return [
        _at_most("ttft-recovers", statistics.median(first) if first else None, "s", targets.ttft,
                 "the time to the first token stays above the target", "raise maxReplicas, or add warm pods"),
        _at_most("queue-drains", last[-1].queue if last else None, "requests waiting", targets.queue,
                 "the queue does not return below the target", "raise maxReplicas, or add warm pods"),
        _kv(moments, last),
        _at_most("nothing-lost", float(len(lost)), "requests", 0.0,
                 f"requests were refused or cut off; the first: {first_cause}",
                 "run python -m smoke doctor; see the gateway's and the router's log"),
    ]  # fmt: skip


def _at_most(name: str, figure: float | None, unit: str, limit: float, cause: str, fix: str) -> Criterion:
    if figure is None:
        return Criterion(
            name=name,
            verdict="fail",
            figure=None,
            unit=unit,
            threshold=limit,
            cause="nothing was measured at the end",
            fix=fix,
        )
    if figure <= limit:
        return Criterion(name=name, verdict="pass", figure=round(figure, 3), unit=unit, threshold=limit)
    return Criterion(
        name=name, verdict="fail", figure=round(figure, 3), unit=unit, threshold=limit, cause=cause, fix=fix
    )


def _kv(moments: Sequence[Moment], last: Sequence[Moment]) -> Criterion:
    peak = max((moment.kv_usage for moment in moments), default=0.0)
    end = last[-1].kv_usage if last else None
    if peak <= KV_HIGH:
        return Criterion(
            name="kv-settles", verdict="skip", figure=round(peak, 3), unit="share of KV space", threshold=KV_HIGH,
            cause="the load never filled the KV space", fix="more users or longer prompts",
        )  # fmt: skip
    return _at_most(
        "kv-settles",
        end,
        "share of KV space",
        KV_SETTLED,
        "the KV space stays full",
        "raise maxReplicas, or lower maxNumSeqs",
    )


def _since(stages: Stages, moments: list[float]) -> float | None:
    return round(min(moments) - stages.before, 1) if moments else None
