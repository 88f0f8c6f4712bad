"""This run against an earlier one: what got worse, named."""

from dataclasses import dataclass
from typing import Final

from smoke.report import ProbeResult, Report

TOLERANCE: Final = 0.2
"""A figure may be a fifth worse before it counts: single runs on shared machines vary by that much."""
LOWER_IS_BETTER: Final = frozenset({"warm/cold TTFT", "s"})
HIGHER_IS_BETTER: Final = frozenset(
    {"share of prompt tokens from the store", "equal tokens", "with/without store", "requests/s"}
)


@dataclass(frozen=True, slots=True)
class Regression:
    """One thing that got worse, in words."""

    probe: str
    text: str


def regressions(earlier: Report, now: Report) -> list[Regression]:
    """Probes that passed and no longer do, that disappeared, or whose figure is more than a fifth worse; and a dearer token."""
    current = {probe.name: probe for probe in now.probes}
    found = []
    for before in earlier.probes:
        if before.verdict == "pass" and (text := _worse(before, current.get(before.name))):
            found.append(Regression(before.name, text))
    return [*found, *_dearer(earlier, now)]


def _dearer(earlier: Report, now: Report) -> list[Regression]:
    """A million tokens within the objective cost more than a fifth more."""
    before, after = (one.cost.per_million_tokens if one.cost else None for one in (earlier, now))
    if before is None or after is None or after <= before * (1 + TOLERANCE):
        return []
    return [Regression("cost", f"{before:g} → {after:g} yuan a million tokens within the objective")]


def _worse(before: ProbeResult, after: ProbeResult | None) -> str | None:
    if after is None:
        return "passed earlier, and is not in this run"
    if after.verdict != "pass":
        return f"passed earlier, now {after.verdict}: {after.cause}"
    if before.figure is None or after.figure is None or before.unit != after.unit:
        return None
    higher, lower = before.figure * (1 + TOLERANCE), before.figure * (1 - TOLERANCE)
    if (before.unit in LOWER_IS_BETTER and after.figure > higher) or (
        before.unit in HIGHER_IS_BETTER and after.figure < lower
    ):
        return f"{before.figure:g} → {after.figure:g} {after.unit}"
    return None
