"""Runs probes one after the other, with bounded retries and one deadline for the whole."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from smoke.errors import SmokeError, TemporaryError
from smoke.probe import LiveStack, Outcome, Probe, failed
from smoke.redact import REDACTOR
from smoke.report import ProbeResult

PAUSES: Final = (1.0, 2.0)
"""Seconds before the second and the third attempt; only temporary errors get them."""

Listener = Callable[[ProbeResult, float], None]
"""Is told each result and how many seconds it took."""


async def run_probes(
    probes: Iterable[Probe], stack: LiveStack, deadline: float, listener: Listener = lambda *_: None
) -> tuple[tuple[ProbeResult, ...], dict[str, Any]]:
    """Every probe's result, and the evidence by probe name. What does not fit into `deadline` seconds fails."""
    ends = time.monotonic() + deadline
    results: list[ProbeResult] = []
    evidence: dict[str, Any] = {}
    for probe in probes:
        started = time.monotonic()
        outcome = await _within(probe, stack, ends, deadline)
        results.append(_result(probe, outcome))
        if outcome.evidence:
            evidence[probe.name] = outcome.evidence
        listener(results[-1], time.monotonic() - started)
    return tuple(results), evidence


async def _within(probe: Probe, stack: LiveStack, ends: float, deadline: float) -> Outcome:
    try:
        async with asyncio.timeout(max(0.0, ends - time.monotonic())):
            await asyncio.sleep(0)  # lets a deadline that has passed already cancel before the probe starts
            return await _with_retries(probe, stack)
    except TimeoutError:
        return failed(
            f"not shown within the deadline of {deadline:g} s for the whole run",
            "look at the slow probes above it, or raise moonstack:smoke.deadlineSeconds",
        )


async def _with_retries(probe: Probe, stack: LiveStack) -> Outcome:
    for pause in (*PAUSES, None):
        try:
            return await probe.check(stack)
        except TemporaryError as error:
            if pause is None:
                return failed(f"{error.cause}, three times in a row", error.fix)
            await asyncio.sleep(pause)
        except SmokeError as error:
            return failed(error.cause, error.fix)
    raise AssertionError("unreachable: the last attempt returns")


def _result(probe: Probe, outcome: Outcome) -> ProbeResult:
    return ProbeResult(
        name=probe.name,
        kind=probe.kind,
        verdict=outcome.verdict,
        figure=None if outcome.figure is None else round(outcome.figure, 4),
        unit=outcome.unit,
        threshold=outcome.threshold,
        cause=outcome.cause and REDACTOR.text(outcome.cause),
        fix=outcome.fix and REDACTOR.text(outcome.fix),
    )
