"""Which metrics scale a role, and at which value per pod."""

from typing import TYPE_CHECKING

from rules.metrics import served
from rules.scaling import Behaviour, requests_per_pod
from settings.autoscaling import EngineScaling, Role

if TYPE_CHECKING:
    from settings.settings import Settings


def role_metrics(settings: "Settings", role: Role, max_num_seqs: int) -> tuple[tuple[str, float], ...]:
    """(metric, target) pairs: prefill is bound by its queue, decode by KV space and batch, an aggregated engine by all (B1)."""
    engines = settings.autoscaling.engines
    queue = (served.QUEUE_DEPTH, engines.queue_depth)
    ttft = (served.TTFT, engines.ttft_seconds)
    kv = (served.KV_UTILIZATION, engines.kv_utilization_percent)
    running = (served.RUNNING, requests_per_pod(engines.running_requests, max_num_seqs))
    return {"prefill": (queue, ttft), "decode": (kv, running), "serve": (queue, ttft, kv)}[role]


def scale_up(engines: EngineScaling) -> Behaviour:
    """B1: 30 s window, 2 pods per 60 s."""
    return Behaviour(
        window_seconds=engines.scale_up_window_seconds,
        pods=engines.scale_up_pods,
        period_seconds=engines.scale_up_period_seconds,
    )


def scale_down(engines: EngineScaling) -> Behaviour:
    """B1: 300 s window, 1 pod per 120 s."""
    return Behaviour(
        window_seconds=engines.scale_down_window_seconds,
        pods=engines.scale_down_pods,
        period_seconds=engines.scale_down_period_seconds,
    )
