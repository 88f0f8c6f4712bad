"""Metrics of vLLM's V1 engine 0.32 and of vllm-ascend, which exposes the same (vllm-project/vllm, `vllm/v1/metrics`)."""

from typing import Final

from rules.metrics.metric import Catalogue, EngineSignals, Kind, Metric, Unit

_OWN: Final = ("model_name", "engine")


def _of(kind: Kind, unit: Unit, *names: str, labels: tuple[str, ...] = (), high: float = float("inf")) -> list[Metric]:
    return [Metric(name=f"vllm:{name}", kind=kind, unit=unit, labels=(*_OWN, *labels), high=high) for name in names]


VLLM: Final = Catalogue(
    program="vllm",
    version="0.32",
    metrics=(
        *_of("gauge", "requests", "num_requests_waiting", "num_requests_running", high=1e5),
        *_of("gauge", "requests", "num_requests_waiting_by_reason", labels=("reason",), high=1e5),
        *_of("gauge", "requests", "num_requests_kv_fetch_by_stage", labels=("stage",), high=1e5),
        *_of("gauge", "ratio", "kv_cache_usage_perc", high=1.0),
        *_of("gauge", "pieces", "engine_sleep_state", labels=("sleep_state",), high=1.0),
        *_of(
            "histogram",
            "seconds",
            "time_to_first_token_seconds",
            "inter_token_latency_seconds",
            "request_time_per_output_token_seconds",
            "e2e_request_latency_seconds",
            "request_queue_time_seconds",
            "request_prefill_time_seconds",
            "request_decode_time_seconds",
            "request_inference_time_seconds",
        ),
        *_of("counter", "pieces", "num_preemptions_total"),
        *_of("counter", "requests", "request_success_total", labels=("finished_reason",)),
        *_of("counter", "requests", "admission_rejections_total", labels=("reason",)),
        *_of(
            "counter",
            "tokens",
            "prompt_tokens_total",
            "generation_tokens_total",
            "prefix_cache_queries_total",
            "prefix_cache_hits_total",
            "external_prefix_cache_queries_total",
            "external_prefix_cache_hits_total",
        ),
        *_of("counter", "tokens", "prompt_tokens_by_source_total", labels=("source",)),
        *_of("counter", "pieces", "mooncake_store_operation_total", labels=("operation", "status")),
        *_of("histogram", "seconds", "mooncake_store_operation_time_seconds", labels=("operation", "status")),
    ),
    retired={
        "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc (0 to 1)",
        "vllm_gpu_cache_usage_perc": "vllm:kv_cache_usage_perc (0 to 1)",
        "vllm:gpu_prefix_cache_queries_total": "vllm:prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_hits_total": "vllm:prefix_cache_hits_total",
        "vllm:avg_generation_throughput_toks_per_s": "rate(vllm:generation_tokens_total[1m])",
        "vllm:avg_prompt_throughput_toks_per_s": "rate(vllm:prompt_tokens_total[1m])",
        "vllm:time_per_output_token_seconds": "vllm:inter_token_latency_seconds",
    },
)

VLLM_SIGNALS: Final = EngineSignals(
    waiting="vllm:num_requests_waiting",
    waiting_by_reason="vllm:num_requests_waiting_by_reason",
    running="vllm:num_requests_running",
    kv_usage="vllm:kv_cache_usage_perc",
    ttft="vllm:time_to_first_token_seconds",
)
