"""Objects of the Prometheus operator and of Grafana's sidecar."""

import json
from typing import Any, Final

from components.context import Context
from components.objects import Manifest
from rules import flow, ports
from rules.alerts import Alert, Panel, alerts, panels
from rules.channel_panels import channel_panels
from settings.settings import Settings
from settings.sharing import sharing_chips, store_pod_count, store_protocols

NAME: Final = "moonstack"
SCRAPED: Final = {
    flow.ENGINE: (ports.ENGINE, "/metrics"),
    flow.ROUTER: (ports.ROUTER_METRICS, "/metrics"),
    flow.GATEWAY: (ports.GATEWAY_METRICS, "/stats/prometheus"),
    flow.KV_STORE: (ports.KV_MASTER_METRICS, "/metrics"),
    flow.CAPACITY: (ports.CAPACITY_METRICS, "/metrics"),
}
"""Component label → port and path."""
RUNBOOKS: Final = "docs/elasticity.md"


def pod_monitors(settings: Settings, context: Context) -> list[Manifest]:
    """One PodMonitor a part."""
    interval = f"{settings.observability.scrape_interval_seconds}s"
    return [_pod_monitor(part, port, path, interval, settings, context) for part, (port, path) in SCRAPED.items()]


def _pod_monitor(part: str, port: int, path: str, interval: str, settings: Settings, context: Context) -> Manifest:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": context.metadata(f"{NAME}-{part}", "observability", labels=settings.observability.monitor_labels),
        "spec": {
            "selector": {
                "matchLabels": {"app.kubernetes.io/component": part, "app.kubernetes.io/instance": context.stack}
            },
            "podMetricsEndpoints": [{"portNumber": port, "path": path, "interval": interval}],
        },
    }


def stack_alerts(settings: Settings) -> list[Alert]:
    """The alerts that fit the stack."""
    watched = settings.observability
    return alerts(
        settings.cluster.namespace,
        watched.ttft_alert_seconds,
        watched.channel_share_alert,
        sharing=sorted(sharing_chips(settings)),
        store_pods=sum(store_pod_count(settings, protocol) for protocol in store_protocols(settings)),
    )


def prometheus_rule(settings: Settings, context: Context) -> Manifest:
    """All alerts as one PrometheusRule."""
    base = settings.observability.runbook_base
    where = str(base).rstrip("/") if base else RUNBOOKS
    rules = [rule(alert, where, context.stack) for alert in stack_alerts(settings)]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": context.metadata(NAME, "observability", labels=settings.observability.monitor_labels),
        "spec": {"groups": [{"name": f"{NAME}.{context.stack}", "rules": rules}]},
    }


def rule(alert: Alert, runbooks: str, stack: str) -> dict[str, Any]:
    """One alert as Prometheus reads it."""
    return {
        "alert": alert.name,
        "expr": alert.query,
        "for": f"{alert.minutes}m",
        "labels": {"severity": alert.severity, "stack": stack},
        "annotations": {"summary": alert.summary, "runbook_url": f"{runbooks}#{alert.name.lower()}"},
    }


def dashboard(settings: Settings, context: Context) -> Manifest:
    """The dashboard as a ConfigMap that Grafana's sidecar loads."""
    graphs = [_graph(number, panel) for number, panel in enumerate([*panels(context.namespace), *_channel(settings)])]
    document = {
        "uid": f"{NAME}-{context.stack}"[:40],
        "title": f"Moonstack {context.stack}",
        "schemaVersion": 39,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": graphs,
    }
    own = {settings.observability.dashboard_label: "1"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(f"{NAME}-dashboard", "observability", labels=own),
        "data": {f"{NAME}-{context.stack}.json": json.dumps(document, indent=1)},
    }


def _channel(settings: Settings) -> list[Panel]:
    if not settings.channel.enabled:
        return []
    return channel_panels(settings.cluster.namespace, settings.channel.quota_qps, settings.channel_models.prices)


def _graph(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query, "legendFormat": panel.legend}],
    }
