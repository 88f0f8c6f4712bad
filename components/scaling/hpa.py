"""HorizontalPodAutoscalers, from the settings alone."""

from typing import Any

from components.context import Context
from components.objects import Manifest
from components.serving_plan import EnginePlan
from rules import names
from rules.metrics import served
from rules.scaling import Behaviour, quantity, scale_in_tolerance
from settings.autoscaling import GatewayScaling
from settings.scaling_rules import role_metrics, scale_down, scale_up
from settings.settings import Settings


def engine_hpa(plan: EnginePlan, settings: Settings, context: Context) -> Manifest:
    """One role of a model on one pool (B1), by the metrics that bind the role."""
    engines = settings.autoscaling.engines
    low, high = engines.bounds(plan.role)
    metrics = role_metrics(settings, plan.role, plan.model.engine.max_num_seqs)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": context.metadata(plan.name, "autoscaling"),
        "spec": {
            "scaleTargetRef": target(plan.name),
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [pods_metric(name, value) for name, value in metrics],
            "behavior": behaviour(scale_up(engines), scale_down(engines)),
        },
    }


def gateway_hpa(scaling: GatewayScaling, qps_per_pod: int, context: Context) -> Manifest:
    """A3's scaler: out above scaleOutThreshold × qpsPerPod requests a second a pod, in below scaleInThreshold of it.

    The room between both is the HPA's scale-down tolerance (Kubernetes 1.35; older servers drop it and scale in earlier).
    """
    tolerance = scale_in_tolerance(scaling.scale_in_threshold, scaling.scale_out_threshold)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": context.metadata(names.GATEWAY, "autoscaling"),
        "spec": {
            "scaleTargetRef": target(names.GATEWAY),
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": [pods_metric(served.GATEWAY_QPS, scaling.scale_out_threshold * qps_per_pod)],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0},
                "scaleDown": {"stabilizationWindowSeconds": 300, "tolerance": quantity(tolerance)},
            },
        },
    }


def behaviour(up: Behaviour, down: Behaviour) -> dict[str, Any]:
    """The HPA's `behavior`: one policy in pods each way."""
    return {"scaleUp": _direction(up), "scaleDown": _direction(down)}


def pods_metric(name: str, value: float) -> dict[str, Any]:
    """A Pods metric with an average a pod as its target."""
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": quantity(value)}},
    }


def target(deployment: str) -> dict[str, str]:
    """A reference to a Deployment."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment}


def _direction(rule: Behaviour) -> dict[str, Any]:
    return {
        "stabilizationWindowSeconds": rule.window_seconds,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": rule.pods, "periodSeconds": rule.period_seconds}],
    }
