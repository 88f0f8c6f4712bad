"""The metrics that the capacity controller serves to the HPA at custom.metrics.k8s.io, one value a pod."""

from typing import Final

from rules.metrics.metric import Metric

QUEUE_DEPTH: Final = "inference_queue_depth"
TTFT: Final = "inference_ttft_seconds"
KV_UTILIZATION: Final = "gpu_memory_utilization"
RUNNING: Final = "inference_running_requests"
GATEWAY_QPS: Final = "gateway_requests_per_second"

SERVED: Final[tuple[Metric, ...]] = (
    Metric(name=QUEUE_DEPTH, kind="gauge", unit="requests", high=1e5, note="requests that wait for capacity"),
    Metric(name=TTFT, kind="gauge", unit="seconds", note="95th percentile over the window; 0 without requests"),
    Metric(
        name=KV_UTILIZATION,
        kind="gauge",
        unit="percent",
        high=100.0,
        note="KV cache in use; device memory is preallocated and would pin the HPA up",
    ),
    Metric(name=RUNNING, kind="gauge", unit="requests", high=1e5, note="requests in the batch"),
    Metric(name=GATEWAY_QPS, kind="gauge", unit="requests", note="requests a second that one gateway pod takes"),
)
GROUP: Final = "custom.metrics.k8s.io"
VERSION: Final = "v1beta2"
"""The only version served: the HPA prefers it, and owning v1beta1 too would displace a prometheus-adapter."""
EXTERNAL_GROUP: Final = "external.metrics.k8s.io"
EXTERNAL_VERSION: Final = "v1beta1"
"""Where KEDA serves the values of its triggers to the HPAs that it makes."""
