"""What a drill is, what it may cost, and what came out."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from smoke.drills.hands import Hands
from smoke.load import Sample
from smoke.probe import LiveStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a drill happens."""

    live: LiveStack
    hands: Hands
    model: str


async def _nothing(ground: Ground) -> None:
    """Every stack has what the drill takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One thing that is taken away. `act` returns when the last old part is gone and the stack is whole again."""

    name: str
    what: str
    carried_by: str
    """The settings that make it lossless."""
    act: Callable[[Ground], Awaitable[None]]
    broken_allowed: bool = False
    """Streams that had begun on the killed pod may break: nobody can repeat half an answer."""
    local_only: bool = False
    needs: Callable[[Ground], Awaitable[str | None]] = _nothing
    """Why a stack has nothing to take away, or can't but lose; None where the drill can be begun."""


class DrillResult(BaseModel):
    """Counts of one drill; slow ones were answered, but their first token came later than the limit."""

    model_config = ConfigDict(frozen=True)

    name: str
    requests: int
    lost: int
    broken: int
    slow: int
    verdict: Literal["pass", "fail", "skip"]
    seconds: float
    cause: str | None
    carried_by: str


def judge(drill: Drill, samples: Sequence[Sample], ended: float, slow_seconds: float) -> DrillResult:
    """Pass when nothing was lost, nothing broke (unless allowed), and requests were still sent after the end.

    `ended` is when the disturbance was over, in seconds since the load's start.
    """
    lost = [sample for sample in samples if sample.outcome == "lost"]
    broken = [sample for sample in samples if sample.outcome == "broken"]
    slow = sum(sample.first_token is not None and sample.first_token > slow_seconds for sample in samples)
    causes = []
    if lost:
        causes.append(f"{len(lost)} lost: {lost[0].cause or f'status {lost[0].status}'}")
    if broken and not drill.broken_allowed:
        causes.append(f"{len(broken)} streams broke, the first {broken[0].cause or 'without a word'}")
    if not any(sample.began > ended and sample.outcome == "ok" for sample in samples):
        causes.append("no request was answered after the end, so nothing is proven")
    return DrillResult(
        name=drill.name,
        requests=len(samples),
        lost=len(lost),
        broken=len(broken),
        slow=slow,
        verdict="fail" if causes else "pass",
        seconds=round(ended, 1),
        cause="; ".join(causes) or None,
        carried_by=drill.carried_by,
    )
