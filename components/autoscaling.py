"""The scalers of the gateway and of every natively served role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import yaml

from components.context import Context
from components.objects import Manifest, declare
from components.scaling.hpa import engine_hpa, gateway_hpa
from components.scaling.keda import adapter_rules, scaled_object
from components.serving_plan import EnginePlan
from rules import names
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class AutoscalingArgs:
    """The settings and the engines of the whole stack; Kthena's scale themselves."""

    settings: Settings
    engines: Sequence[EnginePlan]


@dataclass(frozen=True, kw_only=True)
class AutoscalingResources:
    """Scalers by the name of the Deployment they scale, and the rules for a foreign adapter."""

    engines: Mapping[str, pulumi.CustomResource]
    gateway: pulumi.CustomResource | None
    adapter_rules: pulumi.CustomResource | None


class Autoscaling(pulumi.ComponentResource):
    """One scaler a Deployment: two on one target switch each other off.

    `minReplicas` is the base to begin with; from then on the capacity controller moves it as its own field manager,
    so it is ignored here. Depends on the metrics API: on destroy the HPAs go before it.
    """

    resources: AutoscalingResources

    def __init__(
        self, name: str, args: AutoscalingArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        scaling = args.settings.autoscaling
        super().__init__("moonstack:scaling:Autoscaling", name, {"settings": scaling.model_dump(mode="json")}, opts)
        gateway = scaling.gateway
        qps = args.settings.channel.ratelimit.qps_per_pod
        self.resources = AutoscalingResources(
            engines={plan.name: self._create_scaler(plan, args.settings, context) for plan in native(args)},
            gateway=self._create_hpa(gateway_hpa(gateway, qps, context), context) if gateway.enabled else None,
            adapter_rules=self._create_adapter_rules(args.settings, context),
        )
        self.register_outputs({"scalers": sorted(self.resources.engines)})

    def _create_scaler(self, plan: EnginePlan, settings: Settings, context: Context) -> pulumi.CustomResource:
        if settings.autoscaling.engines.implementation == "keda":
            return declare(scaled_object(plan, settings, context), self, context)
        return self._create_hpa(engine_hpa(plan, settings, context), context)

    def _create_hpa(self, manifest: Manifest, context: Context) -> pulumi.CustomResource:
        return declare(manifest, self, context, ignore_changes=["spec.minReplicas"])

    def _create_adapter_rules(self, settings: Settings, context: Context) -> pulumi.CustomResource | None:
        engines = settings.autoscaling.engines
        if not engines.enabled or engines.metrics_source != "prometheus-adapter":
            return None
        return declare(adapter_config(settings, context), self, context)


def native(args: AutoscalingArgs) -> list[EnginePlan]:
    """The engines that an HPA or KEDA scales."""
    if not args.settings.autoscaling.engines.enabled:
        return []
    return [plan for plan in args.engines if plan.model.backend == "native"]


def adapter_config(settings: Settings, context: Context) -> Manifest:
    """The rules as a ConfigMap, to be merged into the adapter's own configuration by whoever runs it."""
    rules = {"rules": adapter_rules(settings.autoscaling.engines)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(f"{names.CAPACITY}-adapter-rules", "autoscaling"),
        "data": {"config.yaml": yaml.safe_dump(rules, sort_keys=False)},
    }
