"""What the planner sees and what it decides."""

from dataclasses import dataclass
from typing import Literal

from capacity.exposition import EngineSample
from capacity.pods import Pod
from rules.floor import Floor


@dataclass(frozen=True, slots=True)
class Engine:
    """A pod and its fresh sample; None when it has none, for instance while its model loads."""

    pod: Pod
    sample: EngineSample | None
    ttft: float = 0.0
    """95th percentile over the window, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """What stands in the target's HorizontalPodAutoscaler."""

    low: int
    high: int
    current: int
    desired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One target at one moment; `now` is a steady clock in seconds."""

    now: float
    serving: tuple[Engine, ...]
    warm: tuple[Engine, ...]
    hpa: Hpa | None = None
    forecast: float | None = None
    """Requests in flight expected ahead; None when nothing is known, which changes nothing."""
    scheduled: int = 0
    ratio: int = 0
    """Fewest pods that the other role asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What the planner remembers of a target from one tick to the next."""

    floor: Floor | None = None
    active: int | None = None
    """Warm pods that ought to be in service; after a roll they have lost their label and get it again."""
    activated_at: float = -1e9
    surge_floor: int = 0
    calm_since: float | None = None
    costs_at: float = -1e9


@dataclass(frozen=True, slots=True)
class SetFloor:
    """Write `minReplicas` of the target's HPA."""

    target: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Route:
    """Put a warm pod into service, or back into the pool."""

    target: str
    pod: Pod
    active: bool
    reason: Literal["load", "rolled", "calm"]


@dataclass(frozen=True, slots=True)
class SetCost:
    """Write a pod's deletion cost."""

    pod: Pod
    cost: int


Action = SetFloor | Route | SetCost
