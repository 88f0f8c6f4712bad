"""Loaded pods in hand: a second Deployment beside each warmed role, which no router picks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from components.pd_serving import engine_timeouts, rollout_seconds
from components.pods.engine import engine_template
from components.serving_plan import EnginePlan
from rules import labels, names
from rules.warm_pool import RESTING
from settings.warm_pool import WarmPoolSettings


@dataclass(frozen=True, kw_only=True)
class WarmPoolArgs:
    """The pool's settings and the engines of the whole stack."""

    settings: WarmPoolSettings
    engines: Sequence[EnginePlan]


@dataclass(frozen=True, kw_only=True)
class WarmPoolResources:
    """Warm Deployments by name."""

    deployments: Mapping[str, pulumi.CustomResource]


class WarmPool(pulumi.ComponentResource):
    """Deployments with the engine's own pod template, so that both roll together; sized by the controller's weekly review."""

    resources: WarmPoolResources

    def __init__(
        self, name: str, args: WarmPoolArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:scaling:WarmPool", name, {"settings": args.settings.model_dump(mode="json")}, opts)
        deployments = {}
        for plan in warmed(args):
            deployments[warm_name(plan)] = declare(
                deployment(plan, args.settings.replicas, context),
                self,
                context,
                custom_timeouts=engine_timeouts(plan, args.settings.replicas),
                ignore_changes=["spec.replicas"],
            )
        self.resources = WarmPoolResources(deployments=deployments)
        self.register_outputs({"deployments": [item.id for item in deployments.values()]})


def warmed(args: WarmPoolArgs) -> list[EnginePlan]:
    """The engines that have a warm pool."""
    if not args.settings.enabled:
        return []
    return [plan for plan in args.engines if plan.model.backend == "native" and plan.role in args.settings.roles]


def warm_name(plan: EnginePlan) -> str:
    """The warm Deployment beside a plan's own."""
    return names.warm(plan.model.name, plan.role, plan.pool.name)


def deployment(plan: EnginePlan, replicas: int, context: Context) -> Manifest:
    """Its selector is disjoint from the serving one, so that no scaler counts an idle warm pod as capacity.

    The routing label is in no selector: activating a pod moves it to no other owner.
    """
    selector = labels.warm_selector(names.slug(plan.model.name), plan.role, plan.pool.name)
    own = labels.recommended(warm_name(plan), "engine", context.stack)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(warm_name(plan), "engine"),
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": rollout_seconds(plan, replicas),
            "selector": {"matchLabels": selector},
            "template": engine_template(plan.pod, {**plan.labels, **own, **selector, **RESTING}, plan.store_digest),
        },
    }
