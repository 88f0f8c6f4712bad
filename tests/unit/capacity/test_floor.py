"""The floor's pace and bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.floor import Floor, Pace, needed, step
from rules.scaling import quantity, ratio_floor, recommendation, requests_per_pod, scale_in_tolerance

PACE = Pace(up_pods=4, up_period_seconds=60, down_pods=1, down_period_seconds=120)


def test_twenty_percent_more_than_the_forecast():
    assert needed(100, 20, 12) == 10
    assert needed(0, 20, 12) == 0


def test_a_floor_rises_by_its_pace():
    floor = step(Floor(replicas=2, changed=0), 20, 1, 30, PACE, now=1000)
    assert floor.replicas == 6
    assert step(floor, 20, 1, 30, PACE, now=1030).replicas == 6
    assert step(floor, 20, 1, 30, PACE, now=1060).replicas == 10


def test_a_floor_falls_one_by_one_and_never_soon_after_a_raise():
    floor = Floor(replicas=9, changed=0)
    assert step(floor, 2, 2, 30, PACE, now=119).replicas == 9
    lowered = step(floor, 2, 2, 30, PACE, now=120)
    assert lowered.replicas == 8
    assert step(lowered, 2, 2, 30, PACE, now=239).replicas == 8


def test_a_floor_above_the_maximum_is_clamped_and_says_so():
    floor = step(Floor(replicas=9, changed=0), 50, 2, 10, PACE, now=1000)
    assert (floor.replicas, floor.clamped) == (10, True)
    assert not step(floor, 10, 2, 10, PACE, now=1001).clamped


def test_a_lowered_maximum_pulls_the_floor_at_once():
    assert step(Floor(replicas=9, changed=0), 9, 2, 5, PACE, now=1).replicas == 5


@given(st.lists(st.tuples(st.integers(0, 300), st.floats(0, 60)), min_size=1, max_size=60))
def test_whatever_is_wanted_the_floor_stays_in_bounds_and_within_its_pace(course: list[tuple[int, float]]):
    floor, now = Floor(replicas=2, changed=0), 1000.0
    raises: list[tuple[float, int]] = []
    for wanted, pause in course:
        now += pause
        before, floor = floor, step(floor, wanted, 2, 100, PACE, now)
        assert 2 <= floor.replicas <= 100
        assert before.replicas - floor.replicas <= 1
        if floor.replicas > before.replicas:
            raises.append((now, floor.replicas - before.replicas))
            # Two periods may touch, so twice the pace is the most that any minute sees.
            assert sum(by for at, by in raises if now - at < 60) <= 2 * PACE.up_pods
        if floor.replicas < before.replicas:
            assert now - before.changed >= 120


def test_the_hpas_arithmetic():
    assert recommendation(2, [(20, 10)]) == 4
    assert recommendation(2, [(11, 10)]) == 2
    assert recommendation(4, [(2, 10), (2.1, 2)]) == 4
    assert recommendation(4, [(2, 10)]) == 1


def test_the_gateways_thresholds_become_a_tolerance():
    assert scale_in_tolerance(0.35, 0.75) == pytest.approx(0.5333, abs=1e-3)


def test_small_numbers():
    assert requests_per_pod(None, 16) == 12
    assert requests_per_pod(2, 16) == 2
    assert ratio_floor(8, 0.25) == 2
    assert ratio_floor(8, None) == 0
    assert (quantity(2), quantity(0.75)) == ("2", "750m")
