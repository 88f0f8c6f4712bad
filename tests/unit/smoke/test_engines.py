"""Counters of engines, and which pods count as Ready."""

import pytest

from smoke.cluster import ready
from smoke.engines import rise, sums
from smoke.routers import addresses
from tests.unit.smoke.fakes import pod


def test_samples_are_summed_over_their_label_sets():
    page = 'vllm:x_total{engine="0"} 2\nvllm:x_total{engine="1"} 3\nvllm:y{le="+Inf"} 1\n'
    assert sums(page) == {"vllm:x_total": 5, "vllm:y": 1}


@pytest.mark.parametrize(("before", "after", "grown"), [(2, 5, 3), (5, 5, 0), (9, 4, 4)])
def test_a_restarted_engine_counts_from_zero(before: float, after: float, grown: float):
    assert rise({"a": {"n": before}}, {"a": {"n": after}}, "n", ["a"]) == grown


def test_an_engine_that_came_meanwhile_counts_whole():
    assert rise({}, {"a": {"n": 4}}, "n", ["a", "gone"]) == 4


def test_a_pod_that_is_about_to_go_is_not_ready():
    going = pod("a", {})
    assert ready(going)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not ready(going)
    assert not ready(pod("b", {}, ready=False))


def test_addresses_are_found_in_whatever_form_a_router_lists_them():
    page = '{"prefill": [{"url": "http://10.0.0.1:8000"}], "decode": ["http://[fd00::2]:8000"]}'
    assert addresses(page) == {"10.0.0.1", "fd00::2"}
