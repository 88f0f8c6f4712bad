"""Loads to replay: a recorded CSV, or a generated one."""

import csv
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rules.problem import Problem

LONGEST_SECONDS: Final = 60 * 86400
"""A trace's length, its last step included: two months, of which `score` reads every minute."""
LONGEST_REPLAY_SECONDS: Final = 15 * 86400
"""A replayed trace's length: a replay walks in steps of ten seconds, and forecasts look back fourteen days at most."""
COLUMNS: Final = ("seconds", "requests_per_second")
HIGHEST_RATE: Final = 1_000_000
"""Requests a second."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests a second over time; `times` ascend from 0 in seconds, a rate holds until the next time."""

    times: tuple[float, ...]
    rates: tuple[float, ...]

    @property
    def seconds(self) -> int:
        """Length; the last rate holds for one more step."""
        *_, before, end = (0.0, *self.times)
        return math.ceil(end + ((end - before) or 60))

    def sampled(self, step: float) -> list[float]:
        """The mean rate of each `step` seconds: however short a burst in the trace is, all of its requests come."""
        ends = (*self.times[1:], math.inf)
        rates, index = [], 0
        for number in range(math.ceil(self.seconds / step)):
            at, end, came = number * step, (number + 1) * step, 0.0
            while at < end:
                until = min(end, ends[index])
                came += self.rates[index] * (until - at)
                at = until
                index += at >= ends[index]
            rates.append(came / step)
        return rates


class TraceError(Exception):
    """The trace is not usable; `problem` says where and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.line())
        self.problem = problem


def read(path: Path) -> Trace:
    """A CSV with the header `seconds,requests_per_second`. Raises TraceError."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            rows = [(lines.line_num, row) for row in lines if row]
    except OSError as error:
        raise TraceError(Problem(str(path), None, f"cannot be read: {error.strerror}", "give a CSV file")) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(Problem(str(path), None, f"cannot be read: {error}", "give a CSV file")) from None
    head, rows = (rows[0], rows[1:]) if rows else ((0, []), [])
    if rows and tuple(name.strip() for name in head[1]) != COLUMNS:
        raise _bad(path, head[0], head[1], "is not the header of a trace", f"columns: {','.join(COLUMNS)}")
    times, rates = [], []
    for number, row in rows:
        try:
            second, rate = (float(cell) for cell in row)
        except ValueError:
            raise _bad(path, number, row, "needs two numbers", f"columns: {','.join(COLUMNS)}") from None
        if not (math.isfinite(second) and math.isfinite(rate)) or rate < 0:
            raise _bad(path, number, row, "must be finite and not negative", "correct the line")
        if rate > HIGHEST_RATE:
            raise _bad(path, number, row, f"has a rate above {HIGHEST_RATE:,}", "give requests a second")
        if times and second <= times[-1]:
            raise _bad(path, number, row, f"comes after second {times[-1]:g}", "sort the lines by time")
        if times and second - times[0] > LONGEST_SECONDS:
            raise _bad(
                path, number, row, f"is more than {LONGEST_SECONDS // 86400} days after the first line", "cut it"
            )
        times.append(second)
        rates.append(rate)
    if not times:
        raise TraceError(Problem(str(path), 0, "holds no line below the header", f"columns: {','.join(COLUMNS)}"))
    trace = Trace(tuple(t - times[0] for t in times), tuple(rates))
    if trace.seconds > LONGEST_SECONDS:
        days = LONGEST_SECONDS // 86400
        raise _bad(path, *rows[-1], f"holds as long as the step before it: more than {days} days in all", "cut it")
    return trace


def _bad(path: Path, line: int, row: list[str], limit: str, fix: str) -> TraceError:
    return TraceError(Problem(f"{path}:{line}", ",".join(row), limit, fix))


def pulse(scale: float = 1.0) -> Trace:
    """B9's pulse, stretched: low, up tenfold for ten minutes, low again."""
    return Trace((0, 600, 1200, 3000), (scale * 5, scale * 50, scale * 5, scale * 5))


def day(scale: float = 1.0, seed: int = 1) -> Trace:
    """One day by the minute: a daily curve with noise."""
    rng = random.Random(seed)
    rates = [max(0.0, scale * (30 - 22 * math.cos(2 * math.pi * m / 1440) + rng.gauss(0, 2))) for m in range(1440)]
    return Trace(tuple(60.0 * m for m in range(1440)), tuple(rates))


def surge(scale: float = 1.0) -> Trace:
    """2,800 to 12,000 requests a second within 40 s, as in the story behind the gateway, by a hundredth."""
    ramp = [28 + (120 - 28) * s / 40 for s in range(0, 41, 5)]
    times = (0.0, *(600.0 + s for s in range(0, 41, 5)), 2400.0)
    return Trace(times, tuple(scale * r for r in (28.0, *ramp, 28.0)))


GENERATED: Final[dict[str, Callable[[float], Trace]]] = {"pulse": pulse, "day": day, "surge": surge}
