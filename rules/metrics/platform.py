"""Metrics of the parts beside the engines: gateway, router, store, and the capacity controller itself."""

from typing import Final

from rules.metrics.metric import Catalogue, Metric

ROUTER: Final = Catalogue(
    program="vllm-router",
    version="0.1.17",
    metrics=(
        Metric(name="vllm_router_pd_requests_total", kind="counter", unit="requests", labels=("route",)),
        Metric(name="vllm_router_pd_errors_total", kind="counter", unit="requests", labels=("error_type",)),
        Metric(name="vllm_router_pd_prefill_requests_total", kind="counter", unit="requests", labels=("worker",)),
        Metric(name="vllm_router_pd_decode_requests_total", kind="counter", unit="requests", labels=("worker",)),
        Metric(name="vllm_router_processed_requests_total", kind="counter", unit="requests", labels=("worker",)),
        Metric(name="vllm_router_pd_request_duration_seconds", kind="histogram", unit="seconds", labels=("route",)),
        Metric(name="vllm_router_pd_active_decode_requests", kind="gauge", unit="requests", labels=("worker",)),
        Metric(name="vllm_router_pd_pending_decode_requests", kind="gauge", unit="requests", labels=("worker",)),
    ),
)

MOONCAKE: Final = Catalogue(
    program="mooncake-master",
    version="0.3.13",
    metrics=(
        Metric(name="master_active_clients", kind="gauge", unit="pieces"),
        Metric(name="master_total_capacity_bytes", kind="gauge", unit="bytes"),
        Metric(name="master_allocated_bytes", kind="gauge", unit="bytes"),
        Metric(name="master_key_count", kind="gauge", unit="pieces"),
        Metric(name="master_put_start_alloc_failures_total", kind="counter", unit="pieces"),
        Metric(name="master_evicted_key_count", kind="counter", unit="pieces"),
        Metric(name="master_ping_failures_total", kind="counter", unit="pieces"),
    ),
)

_REQUEST: Final = ("model", "client", "served_by")

GATEWAY: Final = Catalogue(
    program="envoy",
    version="1.40",
    metrics=(
        Metric(
            name="envoy_http_downstream_rq_total",
            kind="counter",
            unit="requests",
            labels=("envoy_http_conn_manager_prefix",),
        ),
        Metric(name="envoy_moonstack_requests", kind="counter", unit="requests", labels=(*_REQUEST, "code")),
        Metric(name="envoy_moonstack_key_requests", kind="counter", unit="requests", labels=("client", "version")),
        Metric(name="envoy_moonstack_prompt_tokens", kind="counter", unit="tokens", labels=_REQUEST),
        Metric(name="envoy_moonstack_completion_tokens", kind="counter", unit="tokens", labels=_REQUEST),
        Metric(name="envoy_moonstack_duration", kind="histogram", unit="milliseconds", labels=_REQUEST),
        Metric(name="envoy_moonstack_first_byte", kind="histogram", unit="milliseconds", labels=_REQUEST),
    ),
)

_TARGET: Final = ("target",)

CAPACITY: Final = Catalogue(
    program="moonstack-capacity",
    version="1",
    metrics=(
        Metric(name="moonstack_capacity_leader", kind="gauge", unit="pieces", high=1.0),
        Metric(name="moonstack_capacity_pods", kind="gauge", unit="pods", labels=("target", "state")),
        Metric(name="moonstack_capacity_scrapes_total", kind="counter", unit="pieces", labels=("result",)),
        Metric(name="moonstack_capacity_scrape_seconds", kind="histogram", unit="seconds"),
        Metric(name="moonstack_capacity_rejected_samples_total", kind="counter", unit="pieces", labels=("reason",)),
        Metric(name="moonstack_capacity_floor_replicas", kind="gauge", unit="pods", labels=_TARGET),
        Metric(name="moonstack_capacity_floor_clamped", kind="gauge", unit="pieces", labels=_TARGET, high=1.0),
        Metric(name="moonstack_capacity_load_requests", kind="gauge", unit="requests", labels=_TARGET),
        Metric(name="moonstack_capacity_forecast_requests", kind="gauge", unit="requests", labels=_TARGET),
        Metric(name="moonstack_capacity_forecast_error_requests", kind="gauge", unit="requests", labels=_TARGET),
        Metric(name="moonstack_capacity_warm_activations_total", kind="counter", unit="pods", labels=_TARGET),
        Metric(name="moonstack_capacity_warm_week_activations", kind="gauge", unit="pods", labels=_TARGET),
        Metric(name="moonstack_capacity_warm_size", kind="gauge", unit="pods", labels=_TARGET),
        Metric(name="moonstack_capacity_action_errors_total", kind="counter", unit="pieces", labels=("action",)),
    ),
)
