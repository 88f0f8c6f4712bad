"""What is worth waking somebody for, and what a dashboard shows: queries over the metric catalogue, each linted in tests."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alerting rule; its name is the heading of its runbook."""

    name: str
    query: str
    minutes: int
    severity: Literal["warning", "critical"]
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One graph: title, query, Grafana unit, and the legend of a series."""

    title: str
    query: str
    unit: str
    legend: str = "{{pod}}"


def alerts(
    namespace: str, ttft_seconds: float, channel_share: float, sharing: Sequence[str], store_pods: int = 0
) -> list[Alert]:
    """The alerts of one stack; those about the Mooncake store only where models share one.

    `store_pods` is the number of pods that hold it: they are clients of its masters as engines are.
    """
    here = f'namespace="{namespace}"'
    found = [
        Alert(
            name="PodsWithoutMetric",
            query=f'max by (target) (moonstack_capacity_pods{{{here},state="without_sample"}}) > 0',
            minutes=3,
            severity="warning",
            summary="Ready engines of {{ $labels.target }} answer no metrics: the scaler goes blind for them",
        ),
        Alert(
            name="NoCapacityLeader",
            query=f"max(moonstack_capacity_leader{{{here}}}) < 1",
            minutes=2,
            severity="critical",
            summary="No capacity controller acts: floors hold and warm pods stay where they are",
        ),
        Alert(
            name="FloorClamped",
            query=f"max by (target) (moonstack_capacity_floor_clamped{{{here}}}) > 0",
            minutes=5,
            severity="warning",
            summary="The forecast for {{ $labels.target }} asks for more than maxReplicas",
        ),
        Alert(
            name="FirstTokenSlow",
            query=f"histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket{{{here}}}[5m])))"
            f" > {ttft_seconds:g}",
            minutes=5,
            severity="warning",
            summary="95 % of requests wait longer for their first token than the target allows",
        ),
        Alert(
            name="ChannelShareHigh",
            query=f'sum(rate(envoy_moonstack_duration_sum{{{here},served_by=~"channel/.*"}}[5m]))'
            f" / sum(rate(envoy_moonstack_duration_sum{{{here}}}[5m])) > {channel_share:g}",
            minutes=10,
            severity="warning",
            summary="The external channel takes a large share of all request time: the bottleneck is outside",
        ),
    ]
    return [*found, *(_store_alerts(here, sharing, store_pods) if sharing else [])]


def _store_alerts(here: str, sharing: Sequence[str], store_pods: int) -> list[Alert]:
    models = "|".join(re.escape(model).replace("\\", "\\\\") for model in sorted(sharing))
    engines = f'count(count by (pod) (vllm:num_requests_running{{{here},model_name=~"{models}"}}))'
    return [
        Alert(
            name="ExternalHitsZero",
            query=f"sum(rate(vllm:external_prefix_cache_hits_total{{{here}}}[10m])) == 0"
            f" and sum(rate(vllm:external_prefix_cache_queries_total{{{here}}}[10m])) > 100",
            minutes=10,
            severity="warning",
            summary="Engines ask the shared KV store and never find anything, although all are Ready",
        ),
        Alert(
            name="StoreClientsMissing",
            query=f"sum(master_active_clients{{{here}}}) < {engines}{f' + {store_pods}' if store_pods else ''}",
            minutes=5,
            severity="warning",
            summary="Fewer engines and store pods are connected to the KV store's masters than are running",
        ),
    ]


def panels(namespace: str) -> list[Panel]:
    """The dashboard, top to bottom: demand, response, capacity, cache, channel."""
    here = f'namespace="{namespace}"'
    hits, asked = "vllm:external_prefix_cache_hits_total", "vllm:external_prefix_cache_queries_total"
    return [
        Panel(
            title="Requests a second by target",
            query=f"sum by (served_by) (rate(envoy_moonstack_requests{{{here}}}[1m]))",
            unit="reqps",
            legend="{{served_by}}",
        ),
        Panel(title="Requests waiting", query=f"sum by (pod) (vllm:num_requests_waiting{{{here}}})", unit="short"),
        Panel(title="Requests running", query=f"sum by (pod) (vllm:num_requests_running{{{here}}})", unit="short"),
        Panel(
            title="Time to first token, 95 %",
            query="histogram_quantile(0.95, sum by (le, model_name)"
            f" (rate(vllm:time_to_first_token_seconds_bucket{{{here}}}[2m])))",
            unit="s",
            legend="{{model_name}}",
        ),
        Panel(title="KV cache in use", query=f"max by (pod) (vllm:kv_cache_usage_perc{{{here}}})", unit="percentunit"),
        Panel(
            title="Pods by state",
            query=f"max by (target, state) (moonstack_capacity_pods{{{here}}})",
            unit="short",
            legend="{{target}} {{state}}",
        ),
        Panel(
            title="Floor",
            query=f"max by (target) (moonstack_capacity_floor_replicas{{{here}}})",
            unit="short",
            legend="{{target}}",
        ),
        Panel(
            title="Load and forecast",
            query=f"max by (target) (moonstack_capacity_forecast_requests{{{here}}})",
            unit="short",
            legend="{{target}} forecast",
        ),
        Panel(
            title="Warm activations an hour",
            query=f"sum by (target) (increase(moonstack_capacity_warm_activations_total{{{here}}}[1h]))",
            unit="short",
            legend="{{target}}",
        ),
        Panel(
            title="Shared prefix found",
            query=f"sum(rate({hits}{{{here}}}[5m])) / sum(rate({asked}{{{here}}}[5m]))",
            unit="percentunit",
            legend="share of tokens",
        ),
    ]
