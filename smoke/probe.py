"""What a probe is: a name, what it proves, and a function from the live stack to an outcome."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from settings.settings import Settings
from smoke.client import GatewayClient
from smoke.engines import Engines
from smoke.report import ProbeClass, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStack:
    """The stack under test: its settings, its public door, and its engines' counters where the cluster can be reached."""

    name: str
    settings: Settings
    gateway: GatewayClient
    engines: Engines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a probe found; `figure` and `threshold` are in `unit`."""

    verdict: Verdict
    figure: float | None = None
    unit: str | None = None
    threshold: float | None = None
    cause: str | None = None
    fix: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing to show on a live stack. `check` raises SmokeError where it could not be shown."""

    name: str
    proves: str
    check: Callable[[LiveStack], Awaitable[Outcome]]
    kind: ProbeClass = "safe"


def passed(
    figure: float | None = None, unit: str | None = None, threshold: float | None = None, **evidence: Any
) -> Outcome:
    """It was shown."""
    return Outcome(verdict="pass", figure=figure, unit=unit, threshold=threshold, evidence=evidence)


def failed(
    cause: str,
    fix: str,
    figure: float | None = None,
    unit: str | None = None,
    threshold: float | None = None,
    **evidence: Any,
) -> Outcome:
    """The contrary was shown."""
    return Outcome(
        verdict="fail", figure=figure, unit=unit, threshold=threshold, cause=cause, fix=fix, evidence=evidence
    )


def skipped(cause: str, fix: str) -> Outcome:
    """It does not apply here, or can't be seen from here; `fix` says what would make it visible."""
    return Outcome(verdict="skip", cause=cause, fix=fix)
