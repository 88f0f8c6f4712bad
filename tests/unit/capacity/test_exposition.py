"""What an engine's page says, and what is not believed."""

import math

import pytest

from capacity.exposition import BadSample, gateway_requests, parse
from capacity.window import CounterWindow, HistogramWindow, quantile

PAGE = """# HELP vllm:num_requests_waiting Number of requests waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
vllm:num_requests_waiting{engine="1",model_name="m"} 2.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 4.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0",model_name="m"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 4.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
"""
REASONS = """vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 6.0
"""


def test_the_cores_of_a_pod_add_up_and_the_fullest_cache_counts():
    sample = parse(PAGE, "vllm")
    assert (sample.waiting, sample.running, sample.kv_usage) == (9, 5, 0.5)
    assert sample.ttft == ((1.0, 3.0), (math.inf, 4.0))
    assert sample.in_flight == 14


def test_only_requests_that_wait_for_capacity_count_where_reasons_are_told():
    assert parse(PAGE + REASONS, "vllm").waiting == 3


def test_sglang_is_read_by_its_own_names():
    page = "sglang:num_queue_reqs 2\nsglang:num_running_reqs 3\nsglang:token_usage 0.4\n"
    sample = parse(page, "sglang")
    assert (sample.waiting, sample.running, sample.kv_usage) == (2, 3, 0.4)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("} 7.0", "} NaN", "range"),
        ("} 7.0", "} -1", "range"),
        ("} 7.0", "} 1e9", "range"),
        ("} 0.5", "} 70", "range"),
        ("} 7.0", "} seven", "unreadable"),
        ("vllm:num_requests_running", "vllm:num_requests_walking", "missing"),
        ('le="1.0",model_name="m"} 3.0', 'le="1.0",model_name="m"} NaN', "range"),
    ],
)
def test_what_cannot_be_true_is_not_believed(old: str, new: str, reason: str):
    with pytest.raises(BadSample) as caught:
        parse(PAGE.replace(old, new), "vllm")
    assert caught.value.reason == reason


def test_a_quantile_interpolates_within_its_bucket():
    assert quantile(((1.0, 50.0), (2.0, 100.0), (math.inf, 100.0)), 0.75) == 1.5
    assert quantile(((1.0, 0.0), (math.inf, 10.0)), 0.95) == 1.0
    assert quantile((), 0.95) == 0.0


def test_the_window_forgets_what_is_older():
    window = HistogramWindow(60)
    window.add(0, ((1.0, 0.0), (4.0, 0.0), (math.inf, 0.0)))
    assert window.quantile(0.95) == 0
    window.add(10, ((1.0, 0.0), (4.0, 20.0), (math.inf, 20.0)))
    assert window.quantile(0.95) > 3
    window.add(71, ((1.0, 0.0), (4.0, 20.0), (math.inf, 20.0)))
    assert window.quantile(0.95) == 0


def test_a_restarted_engine_starts_a_new_window():
    window = HistogramWindow(60)
    window.add(0, ((1.0, 100.0), (math.inf, 100.0)))
    window.add(1, ((1.0, 0.0), (math.inf, 0.0)))
    window.add(2, ((1.0, 5.0), (math.inf, 5.0)))
    assert 0 < window.quantile(0.5) < 1


GATEWAY = """# TYPE envoy_http_downstream_rq_total counter
envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="admin"} 900
envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="gateway"} 120
envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="health"} 800
"""


def test_only_the_data_port_of_a_gateway_counts():
    assert gateway_requests(GATEWAY) == 120
    with pytest.raises(BadSample):
        gateway_requests(GATEWAY.replace(" 120", " NaN"))


def test_a_rate_is_taken_over_its_window_and_survives_a_restart():
    window = CounterWindow(10)
    window.add(0, 100)
    assert window.rate() == 0
    for second in range(1, 31):
        window.add(second, 100 + 5 * second)
    assert window.rate() == 5
    window.add(31, 3)
    assert window.rate() == 0
    window.add(33, 7)
    assert window.rate() == 2
