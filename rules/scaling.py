"""How replicas follow metrics: the HPA's own arithmetic, and the numbers that our rules are derived from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BATCH_SHARE: Final = 0.75
"""Share of the batch (maxNumSeqs) at which a pod counts as used: A3's scale-out threshold."""
HPA_TOLERANCE: Final = 0.1
"""kube-controller-manager's default: a target of 10 acts above 11 only."""
HPA_SYNC_SECONDS: Final = 15
SAMPLE_AGE_LIMIT_SECONDS: Final = 15
"""Older samples are not served: the HPA ignores timestamps of Pods metrics, so staleness is ours to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One direction of an HPA: window and pods a period."""

    window_seconds: int
    pods: int
    period_seconds: int


def requests_per_pod(declared: float | None, max_num_seqs: int) -> float:
    """Requests in flight that one pod takes: as declared, else `BATCH_SHARE` of its batch."""
    return declared if declared is not None else max(1.0, BATCH_SHARE * max_num_seqs)


def recommendation(replicas: int, averages: Sequence[tuple[float, float]], tolerance: float = HPA_TOLERANCE) -> int:
    """What the HPA asks for by (average, target) of each metric: the largest proposal, nothing within the tolerance."""
    proposals = []
    for average, target in averages:
        ratio = average / target
        proposals.append(replicas if 1 - tolerance <= ratio <= 1 + tolerance else math.ceil(replicas * ratio - 1e-9))
    return max(proposals, default=replicas)


def ratio_floor(other_role_replicas: int, per_other: float | None) -> int:
    """Fewest pods of a role that the number of pods of the other role asks for."""
    return math.ceil(other_role_replicas * per_other - 1e-9) if per_other else 0


def scale_in_tolerance(scale_in: float, scale_out: float) -> float:
    """The HPA's scale-down tolerance by which it lowers replicas only below `scale_in` when it aims at `scale_out`."""
    return 1 - scale_in / scale_out


def quantity(value: float) -> str:
    """A Kubernetes quantity of a number, in milli-units where it isn't whole."""
    return str(int(value)) if float(value).is_integer() else f"{round(value * 1000)}m"
