"""The warm pool's week in the smoke report, from the controller's own memory."""

import json

import pytest

from capacity.act.memory import STATE_KEY, Memory, Review, TargetMemory
from smoke import warm
from smoke.page.render import report_page
from smoke.warm import weeks_of
from tests.unit.smoke.test_page import report


def remembered() -> dict[str, str]:
    memory = Memory(history_days=4)
    memory.targets["b"] = TargetMemory(watched=4320, used=2)
    memory.targets["a"] = TargetMemory(review=Review(at=1_800_000_000, activations=31, before=2, asked=3, after=2))
    memory.targets["gateway"] = TargetMemory(floor=3)
    return memory.dump()


def test_the_report_reads_what_the_controller_writes():
    assert warm.STATE_KEY == STATE_KEY
    a, b = weeks_of(remembered())
    assert (a.target, b.target, b.activations, b.days) == ("a", "b", 2, 3.0)
    assert "31 activations, 2 → 2 warm pods, 3 asked for and the shared chips left 2" in a.line()
    assert b.line() == "2 activations in 3.0 of 7 days; last review not reviewed yet"


def test_the_page_shows_each_warm_pools_week():
    page = report_page(report([]).model_copy(update={"warm_pools": weeks_of(remembered())}), {})
    assert "Warm pool" in page and "2 activations in 3.0 of 7 days" in page
    assert "of 7 days" not in report_page(report([]), {})


@pytest.mark.parametrize("text", ["{", "[]", "null", json.dumps({"targets": {"a": {"watched": 1}}})])
def test_an_unreadable_memory_is_none(text: str):
    assert weeks_of({STATE_KEY: text}) == ()
