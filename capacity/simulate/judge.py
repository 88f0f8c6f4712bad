"""What a replay shows: figures, and rules that oscillate or never fire."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from capacity.simulate.run import Point, Replay, over_target_seconds
from rules.scaling import HPA_TOLERANCE

REVERSAL_SECONDS = 1800
REVERSALS_ALLOWED = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a rule."""

    rule: str
    verdict: str
    cause: str
    fix: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Replicas, requests waiting, seconds and yuan over the whole replay."""

    most_replicas: int
    least_replicas: int
    longest_queue: float
    worst_ttft: float
    over_ttft_seconds: float
    warm_activations: int
    cost: float


def summary(replay: Replay, ttft: float) -> Summary:
    """The figures of a replay."""
    points = replay.points
    came_in = sum(max(0, b.active_warm - a.active_warm) for a, b in itertools.pairwise(points))
    return Summary(
        most_replicas=max(p.replicas for p in points),
        least_replicas=min(p.replicas for p in points),
        longest_queue=max(p.queue for p in points),
        worst_ttft=max(p.ttft for p in points),
        over_ttft_seconds=over_target_seconds(points, replay.step, ttft),
        warm_activations=came_in,
        cost=round(sum(p.cost for p in points) * replay.step / 3600, 2),
    )


def findings(replay: Replay, maximum: int) -> list[Finding]:
    """Rules that never fire, replicas that swing, and a maximum that is too low."""
    found = [
        Finding(
            metric,
            "never fires",
            f"reached {peak:.0%} of its target at most in this load",
            "lower the target, replay a heavier load, or drop the rule",
        )
        for metric, peak in replay.peaks.items()
        if peak <= 1 + HPA_TOLERANCE
    ]
    if (count := reversals(replay.points)) > REVERSALS_ALLOWED:
        found.append(
            Finding(
                replay.target,
                "oscillates",
                f"replicas changed direction {count} times within half an hour each",
                "lengthen scaleDownWindowSeconds or lower scaleUpPods",
            )
        )
    stuck = [p for p in replay.points if p.replicas >= maximum and p.queue > p.replicas]
    if stuck:
        found.append(
            Finding(
                replay.target,
                "hits its maximum",
                f"{len(stuck) * replay.step:.0f} s at {maximum} replicas with a queue",
                "raise maxReplicas, or accept the fallback to the channel",
            )
        )
    return found


def reversals(points: Sequence[Point]) -> int:
    """How often replicas turned from rising to falling or back, soon after the last change."""
    changes = [(b.second, b.replicas - a.replicas) for a, b in itertools.pairwise(points) if b.replicas != a.replicas]
    return sum(
        x * y < 0 and later - earlier <= REVERSAL_SECONDS for (earlier, x), (later, y) in itertools.pairwise(changes)
    )
