"""The scaling-rule linter, on mistakes that stand in published examples and on rules that are right."""

import pytest

from rules.metrics import CATALOGUES
from rules.metrics.lint import ScalingRule, lint_query, lint_rule
from rules.metrics.promql import selectors
from rules.metrics.served import SERVED


def lint(query: str, target: float, served: bool = False) -> str:
    rule = ScalingRule(path="rule", query=query, target=target, served=served)
    return "\n".join(problem.line() for problem in lint_rule(rule))


@pytest.mark.parametrize(
    ("query", "target", "said"),
    [
        ("avg(vllm_gpu_cache_usage_perc)", 70, "kv_cache_usage_perc"),
        ("avg(vllm:kv_cache_usage_perc)", 70, "0 to 1, not percent"),
        ("vllm:kv_cache_usage_perc", 50, "never fires"),
        ("sum(vllm:kv_cache_usage_perc)", 0.75, "grows with every pod"),
        ('sum(vllm:num_requests_waiting{model="llama"})', 5, "no such label"),
        ("avg(vllm:avg_generation_throughput_toks_per_s)", 10, "rate(vllm:generation_tokens_total"),
        ("sum(vllm:prompt_tokens_total)", 100, "only grows"),
        ("rate(vllm:num_requests_running[1m])", 4, "rate() means nothing"),
        ("rate(vllm:prompt_tokens_total)", 4, "needs a range"),
        ("sum(vllm:num_request_waiting)", 5, "did you mean vllm:num_requests_waiting"),
        ("sum(vllm:num_requests_waiting", 5, "bracket too many"),
        ("1", 5, "selects no series"),
    ],
)
def test_a_rule_that_cannot_work_is_named_with_the_reason(query: str, target: float, said: str):
    assert said in lint(query, target)


@pytest.mark.parametrize(
    ("query", "target"),
    [
        ('sum by (pod) (vllm:num_requests_waiting{model_name="a", namespace="n"})', 10),
        ("avg(vllm:kv_cache_usage_perc)", 0.75),
        ("avg(vllm:kv_cache_usage_perc) by (model_name)", 0.75),
        ("histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))", 2),
        ('sum(rate(vllm:request_success_total{finished_reason="stop"}[1m]))', 2),
        ("avg(sglang:token_usage)", 0.85),
    ],
)
def test_a_sound_rule_passes(query: str, target: float):
    assert lint(query, target) == ""


def test_served_metrics_are_checked_by_name_and_range():
    assert lint("inference_queue_depth", 10, served=True) == ""
    assert "not served" in lint("inference_queue", 10, served=True)
    assert "between 0 and 100" in lint("gpu_memory_utilization", 850, served=True)


def test_a_query_reads_as_its_selectors():
    found = selectors('avg by (pod) (rate(a_total{x="}(", y!="2"}[5m])) / on (pod) group_left (z) max(b) > 3')
    assert [(s.name, s.labels, s.ranged, s.calls) for s in found] == [
        ("a_total", ("x", "y"), True, ("rate", "avg")),
        ("b", (), False, ("max",)),
    ]


def test_no_two_metrics_of_a_catalogue_share_a_series():
    for catalogue in CATALOGUES:
        names = [series for metric in catalogue.metrics for series in metric.series()]
        assert len(names) == len(set(names)), catalogue.program
    assert len({metric.name for metric in SERVED}) == len(SERVED)


def test_text_that_only_contains_a_metric_name_is_not_that_metric():
    assert lint_query("q", "sum(vllm:num_requests_waiting_by_reason)") == []
    assert lint_query("q", "sum(vllm:num_requests_waiting_by)") != []
