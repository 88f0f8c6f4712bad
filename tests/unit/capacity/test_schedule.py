"""When pods are scraped, by a clock of the test's own."""

import itertools
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from capacity.schedule import Schedule

HUNDRED = [f"p{number}" for number in range(100)]


def course(schedule: Schedule, moments: list[float]) -> dict[str, list[float]]:
    """When each pod was due, asked at these moments."""
    asked: dict[str, list[float]] = defaultdict(list)
    for now in moments:
        for name in schedule.due(now):
            asked[name].append(now)
    return asked


def test_a_new_pod_is_due_at_once():
    schedule = Schedule(1)
    schedule.keep(["a"], 10.25)
    assert schedule.wait(10.25) == 0
    assert schedule.due(10.25) == ["a"]
    schedule.keep(["a", "b"], 10.5)
    assert "b" in schedule.due(10.5)


def test_pods_are_spread_over_the_interval():
    schedule = Schedule(1)
    schedule.keep(HUNDRED, 0)
    schedule.due(0)
    slots = [len(schedule.due(5 + (slot + 1) / 10)) for slot in range(-1, 10)][1:]
    assert sum(slots) == 100
    assert max(slots) <= 12


def test_no_delay_adds_up():
    """Looked after every 30 ms and a bit, as a busy loop does, a pod is still asked once a second for an hour."""
    schedule = Schedule(1)
    schedule.keep(["a", "b", "c"], 0)
    asked = course(schedule, [number * 0.0317 for number in range(int(3600 / 0.0317))])
    for times in asked.values():
        assert 3599 <= len(times) <= 3601
        assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 1.04


def test_after_a_standstill_each_pod_is_asked_once():
    schedule = Schedule(1)
    schedule.keep(HUNDRED, 0)
    schedule.due(0)
    assert sorted(schedule.due(60)) == sorted(HUNDRED)
    assert schedule.due(60) == []


def test_a_pod_that_went_is_not_due_and_one_that_comes_back_is_new():
    schedule = Schedule(1)
    schedule.keep(["a", "b"], 0)
    schedule.due(0)
    schedule.keep(["b"], 0.1)
    assert course(schedule, [0.1 * n for n in range(1, 50)]).keys() == {"b"}
    schedule.keep(["a", "b"], 5.01)
    assert "a" in schedule.due(5.01)


def test_without_pods_it_waits_an_interval():
    assert Schedule(2).wait(7) == 2


@given(
    st.floats(0.1, 5),
    st.floats(0, 1e7),
    st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_whenever_it_is_looked_at_a_pod_is_never_due_twice_at_a_time_nor_later_than_an_interval(
    interval: float, start: float, pauses: list[float]
):
    schedule, now = Schedule(interval), start
    schedule.keep(HUNDRED[:7], now)
    for pause in pauses:
        due = schedule.due(now)
        assert len(due) == len(set(due)) and schedule.due(now) == []
        assert 0 < schedule.wait(now) <= interval * 1.001 + 1e-6
        now += pause
