"""Forecast and history: gaps, restarts, jumping clocks, and the method's worth on traces."""

import math
import random
from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.config import Window
from capacity.plan.forecast import last_value, same_time_of_day
from capacity.plan.history import LoadHistory
from capacity.plan.windows import scheduled_floor


def ramps(days: int, seed: int = 1) -> list[float]:
    """Three recurring ramps a day with noise."""
    rng = random.Random(seed)
    load = []
    for minute in range(days * 1440):
        of_day = minute % 1440
        base = 20 + sum(60 * math.exp(-(((of_day - peak) / 30) ** 2)) for peak in (540, 840, 1200))
        load.append(max(0.0, base + rng.gauss(0, 2)))
    return load


def test_a_recurring_ramp_is_seen_before_it_comes():
    load = ramps(6)
    naive = ours = 0.0
    for now in range(5 * 1440, 6 * 1440 - 6):
        came = load[now + 4]
        naive += max(0.0, came - 1.2 * (last_value(load[:now], 5) or 0))
        ours += max(0.0, came - 1.2 * (same_time_of_day(load[:now], 5) or 0))
    assert ours < 0.2 * naive


@pytest.mark.parametrize("gap", [[None], [5.0, None, 5.0], [None, 5.0]])
def test_a_gap_forecasts_nothing(gap: list[float | None]):
    assert same_time_of_day([5.0] * 10 + gap, 5) is None


def test_without_history_the_level_is_the_forecast():
    assert same_time_of_day([4.0, 5.0, 6.0], 5) == 6.0
    assert same_time_of_day([6.0], 5) is None


def test_minutes_are_means_and_a_missing_minute_is_a_gap():
    history = LoadHistory(days=4)
    for minute, load in ((100, 2.0), (100, 4.0), (101, 5.0), (103, 7.0), (104, 1.0)):
        history.note(minute, load)
    assert history.first == 100
    assert history.values == [3.0, 5.0, None, 7.0]
    assert history.last(104) == [3.0, 5.0, None, 7.0]
    assert history.last(106)[-2:] == [None, None]


def test_a_clock_that_jumps_back_changes_nothing_recorded():
    history = LoadHistory(days=4)
    for minute in (100, 101, 102):
        history.note(minute, 5.0)
    before = list(history.values)
    assert history.note(50, 99.0) is False
    assert history.values == before
    history.note(103, 5.0)
    assert history.values == [*before, 5.0]


def test_a_clock_that_jumps_far_ahead_starts_over():
    history = LoadHistory(days=1)
    for minute in (100, 101, 100_000, 100_001):
        history.note(minute, 5.0)
    assert (history.first, history.values) == (100_000, [5.0])


def test_history_is_bounded():
    history = LoadHistory(days=1)
    for minute in range(5000):
        history.note(minute, 1.0)
    assert len(history.values) == 2 * 1440


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e4).map(lambda x: round(x, 1))), max_size=50))
def test_history_survives_a_restart(values: list[float | None]):
    history = LoadHistory(days=4, first=7, values=values)
    again = LoadHistory.load(history.dump(), days=4)
    assert again.values == (values if values != [None] else [])


def test_unreadable_history_is_empty_history():
    assert LoadHistory.load("x|1,2", days=4).values == []
    assert LoadHistory.load("", days=4).values == []


WINDOW = Window(days=("mon",), start=time(22), end=time(2), timezone="Asia/Shanghai", replicas=6)


@pytest.mark.parametrize(
    ("at", "floor"),
    [
        ("2026-11-30T13:54", 0),
        ("2026-11-30T13:55", 6),  # 21:55 in Shanghai, five minutes ahead
        ("2026-11-30T17:59", 6),  # past midnight there
        ("2026-11-30T18:00", 0),
        ("2026-12-01T14:30", 0),  # a Tuesday
    ],
)
def test_a_window_opens_early_and_passes_midnight(at: str, floor: int):
    assert scheduled_floor([WINDOW], datetime.fromisoformat(at).replace(tzinfo=UTC), lead_minutes=5) == floor
