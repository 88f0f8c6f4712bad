"""How busy a target is."""

import math
from collections.abc import Sequence

from capacity.config import ControllerConfig, Target
from capacity.plan.model import Engine, Observation
from rules import warm_pool

ENOUGH_SAMPLES = 0.8
"""Below this share of pods with a fresh sample the total load is unknown, not small."""


def routed(seen: Observation) -> list[Engine]:
    """Ready engines that routers may pick: the serving ones and the activated warm ones."""
    engines = [*seen.serving, *(e for e in seen.warm if warm_pool.is_active(dict(e.pod.labels)))]
    return [engine for engine in engines if engine.pod.ready]


def in_flight(engines: Sequence[Engine]) -> float | None:
    """Requests waiting or running on all engines, scaled up for the few without a sample; None when too many are."""
    known = [engine.sample.in_flight for engine in engines if engine.sample is not None]
    if not engines or len(known) < ENOUGH_SAMPLES * len(engines):
        return None
    return sum(known) * len(engines) / len(known)


def overloaded(config: ControllerConfig, target: Target, engines: Sequence[Engine]) -> bool:
    """Whether the target is over what its engines take: decode by batch and KV space, the others by queue and TTFT."""
    samples = [engine.sample for engine in engines if engine.sample is not None]
    if not samples:
        return False
    waiting = sum(sample.waiting for sample in samples)
    if waiting / len(samples) >= config.queue_depth:
        return True
    if target.role == "decode":
        batch = sum(sample.in_flight for sample in samples) / len(samples)
        space = sum(sample.kv_usage for sample in samples) / len(samples) * 100
        return batch > target.requests_per_pod or (waiting > 0 and space >= config.kv_utilization_percent)
    return waiting > 0 and max(engine.ttft for engine in engines) >= config.ttft


def pods_for(load: float, per_pod: float) -> int:
    """Pods that a load keeps busy."""
    return math.ceil(load / per_pod - 1e-9)
