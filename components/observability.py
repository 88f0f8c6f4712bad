"""PodMonitors, alert rules and a dashboard, where the settings say that their consumers exist."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.context import Context
from components.objects import declare
from components.scaling import monitoring
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ObservabilityResources:
    """What was declared."""

    monitors: Sequence[pulumi.CustomResource]
    alerts: pulumi.CustomResource | None
    dashboard: pulumi.CustomResource | None


class Observability(pulumi.ComponentResource):
    """Nothing but these objects: Prometheus, its operator and Grafana are prerequisites."""

    resources: ObservabilityResources

    def __init__(self, name: str, args: Settings, context: Context, opts: pulumi.ResourceOptions | None = None) -> None:
        wanted = args.observability
        super().__init__("moonstack:scaling:Observability", name, {"settings": wanted.model_dump(mode="json")}, opts)
        monitors = monitoring.pod_monitors(args, context) if wanted.pod_monitors else []
        self.resources = ObservabilityResources(
            monitors=[declare(manifest, self, context) for manifest in monitors],
            alerts=declare(monitoring.prometheus_rule(args, context), self, context) if wanted.alerts else None,
            dashboard=declare(monitoring.dashboard(args, context), self, context) if wanted.dashboards else None,
        )
        self.register_outputs({"monitors": len(monitors)})
