"""KEDA ScaledObjects from the same declaration as the HPAs; their queries are held against the catalogue in tests."""

from typing import Any

from components.context import Context
from components.objects import Manifest
from components.scaling.hpa import behaviour
from components.serving_plan import EnginePlan
from rules.metrics import ENGINES, served
from settings.autoscaling import EngineScaling
from settings.scaling_rules import role_metrics, scale_down, scale_up
from settings.settings import Settings


def scaled_object(plan: EnginePlan, settings: Settings, context: Context) -> Manifest:
    """One role on one pool. While Prometheus is away replicas stay as they are (kedacore/keda#965, #7239).

    No pollingInterval and no cooldownPeriod: KEDA reads them only where the minimum is 0, and warns of them elsewhere.
    """
    engines = settings.autoscaling.engines
    low, high = engines.bounds(plan.role)
    metrics = role_metrics(settings, plan.role, plan.model.engine.max_num_seqs)
    triggers = [_builtin(engines, plan.name, context.namespace, metric, value) for metric, value in metrics]
    own = [_trigger(engines, t.name, t.query, t.target, "AverageValue") for t in engines.triggers]
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": context.metadata(plan.name, "autoscaling"),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": plan.name},
            "minReplicaCount": low,
            "maxReplicaCount": high,
            "fallback": {"failureThreshold": 3, "replicas": low, "behavior": "currentReplicasIfHigher"},
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "name": plan.name,
                    "behavior": behaviour(scale_up(engines), scale_down(engines)),
                }
            },
            "triggers": [*triggers, *own],
        },
    }


def query(engines: EngineScaling, metric: str, deployment: str, namespace: str) -> tuple[str, float, str]:
    """PromQL for a served metric, the factor of its target, and how the result is compared.

    The pod pattern is the Deployment's own: a `-warm` pod has one part more in its name. A quantile over no requests is
    NaN, which KEDA takes for a failed trigger; idle engines answer 0 instead, and only pods without series answer nothing.
    """
    _, signals = ENGINES[engines.engine]
    pods = f'namespace="{namespace}",pod=~"{deployment}-[a-z0-9]+-[a-z0-9]{{5}}"'
    window = f"{engines.ttft_window_seconds}s"
    return {
        served.QUEUE_DEPTH: (f"sum({signals.waiting}{{{pods}}})", 1.0, "AverageValue"),
        served.RUNNING: (f"sum({signals.running}{{{pods}}})", 1.0, "AverageValue"),
        served.KV_UTILIZATION: (f"avg({signals.kv_usage}{{{pods}}})", 0.01, "Value"),
        served.TTFT: (
            f"(histogram_quantile(0.95, sum by (le) (rate({signals.ttft}_bucket{{{pods}}}[{window}]))) >= 0)"
            f" or 0 * sum(rate({signals.ttft}_count{{{pods}}}[{window}]))",
            1.0,
            "Value",
        ),
    }[metric]


def _builtin(engines: EngineScaling, deployment: str, namespace: str, metric: str, value: float) -> dict[str, Any]:
    text, factor, kind = query(engines, metric, deployment, namespace)
    return _trigger(engines, metric, text, value * factor, kind)


def _trigger(engines: EngineScaling, name: str, text: str, value: float, kind: str) -> dict[str, Any]:
    return {
        "type": "prometheus",
        "name": name.replace("_", "-"),
        "metricType": kind,
        "metadata": {
            "serverAddress": str(engines.prometheus_url).rstrip("/"),
            "query": text,
            "threshold": f"{value:g}",
            "ignoreNullValues": "false",
        },
    }


def adapter_rules(engines: EngineScaling) -> list[dict[str, Any]]:
    """Rules that a prometheus-adapter needs to serve our metric names (`metricsSource: prometheus-adapter`)."""
    _, signals = ENGINES[engines.engine]
    window = f"{engines.ttft_window_seconds}s"
    series = {
        served.QUEUE_DEPTH: (signals.waiting, "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"),
        served.RUNNING: (signals.running, "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"),
        served.KV_UTILIZATION: (signals.kv_usage, "100 * max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"),
        served.TTFT: (
            f"{signals.ttft}_bucket",
            f"histogram_quantile(0.95, sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[{window}])) by (<<.GroupBy>>, le))",
        ),
    }
    return [
        {
            "seriesQuery": f'{name}{{namespace!="",pod!=""}}',
            "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
            "name": {"matches": f"^{name}$", "as": metric},
            "metricsQuery": text,
        }
        for metric, (name, text) in series.items()
    ]
