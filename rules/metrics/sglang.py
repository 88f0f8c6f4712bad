"""Metrics of SGLang 0.5 (sgl-project/sglang, `python/sglang/srt/metrics/collector.py`)."""

from typing import Final

from rules.metrics.metric import Catalogue, EngineSignals, Metric

_OWN: Final = ("model_name", "engine_type", "tp_rank", "pp_rank")

SGLANG: Final = Catalogue(
    program="sglang",
    version="0.5",
    metrics=(
        Metric(name="sglang:num_running_reqs", kind="gauge", unit="requests", labels=_OWN, high=1e5),
        Metric(name="sglang:num_queue_reqs", kind="gauge", unit="requests", labels=_OWN, high=1e5),
        Metric(name="sglang:num_used_tokens", kind="gauge", unit="tokens", labels=_OWN),
        Metric(name="sglang:token_usage", kind="gauge", unit="ratio", labels=_OWN, high=1.0),
        Metric(name="sglang:cache_hit_rate", kind="gauge", unit="ratio", labels=_OWN, high=1.0),
        Metric(name="sglang:gen_throughput", kind="gauge", unit="tokens", labels=_OWN, note="tokens a second"),
        Metric(name="sglang:time_to_first_token_seconds", kind="histogram", unit="seconds", labels=("model_name",)),
        Metric(name="sglang:inter_token_latency_seconds", kind="histogram", unit="seconds", labels=("model_name",)),
        Metric(name="sglang:e2e_request_latency_seconds", kind="histogram", unit="seconds", labels=("model_name",)),
        Metric(name="sglang:prompt_tokens_total", kind="counter", unit="tokens", labels=("model_name",)),
        Metric(name="sglang:generation_tokens_total", kind="counter", unit="tokens", labels=("model_name",)),
    ),
)

SGLANG_SIGNALS: Final = EngineSignals(
    waiting="sglang:num_queue_reqs",
    running="sglang:num_running_reqs",
    kv_usage="sglang:token_usage",
    ttft="sglang:time_to_first_token_seconds",
)
