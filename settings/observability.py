"""Who watches: PodMonitors, alert rules and dashboards where their consumers exist."""

from pydantic import AnyHttpUrl, Field

from settings.base import Group, LabelKey, LabelValue


class ObservabilitySettings(Group):
    """Objects of the Prometheus operator and of Grafana's sidecar; off where neither is installed."""

    pod_monitors: bool = False
    """Whether PodMonitors are declared."""
    alerts: bool = False
    """Whether a PrometheusRule with the alerts is declared."""
    dashboards: bool = False
    """ConfigMaps that Grafana's sidecar picks up by `dashboardLabel`."""
    scrape_interval_seconds: int = Field(default=15, ge=1, le=300)
    """How often Prometheus scrapes."""
    monitor_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels by which the Prometheus object selects monitors and rules, e.g. `release`."""
    dashboard_label: LabelKey = "grafana_dashboard"
    """The label of the dashboards' ConfigMaps."""
    runbook_base: AnyHttpUrl | None = None
    """Base URL of docs/runbooks.md as published; alerts carry a relative link when not given."""
    ttft_alert_seconds: float = Field(default=2, gt=0, le=86_400)
    """Time to the first token above which FirstTokenSlow is raised."""
    channel_share_alert: float = Field(default=0.3, gt=0, le=1)
    """Share of a request's time spent in the external channel (A11)."""
