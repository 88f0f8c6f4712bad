"""A model served natively: one Deployment a role and pool, and vllm-routers in front."""

from dataclasses import dataclass

import pulumi

from components.context import Context
from components.disruption import disruption_budget
from components.objects import Manifest, declare
from components.pods.engine import engine_template
from components.router import Router, RouterArgs
from components.serving_plan import EnginePlan
from rules import timing
from settings.models import ModelSettings


@dataclass(frozen=True, kw_only=True)
class PdServingArgs:
    """The model and its engines, all of one set; `scaled` says that a scaler owns the replicas."""

    model: ModelSettings
    engines: tuple[EnginePlan, ...]
    scaled: bool

    @property
    def set_id(self) -> str:
        """The set of a model that changes as a whole, empty for others."""
        return next((plan.set_id for plan in self.engines), "")


@dataclass(frozen=True, kw_only=True)
class PdServingResources:
    """The engines' Deployments by name, their budgets, and the routers."""

    engines: dict[str, pulumi.CustomResource]
    budgets: dict[str, pulumi.CustomResource]
    router: Router


class PdServing(pulumi.ComponentResource):
    """Prefill and decode (or aggregated) engines of one model on plain Kubernetes.

    With a set, another one has other names: its engines and routers are made and Ready first, then the routers' Service moves over,
    and Pulumi deletes what the program no longer declares last, routers before their engines.
    """

    resources: PdServingResources

    def __init__(
        self, name: str, args: PdServingArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:serving:PdServing", name, {"model": args.model.model_dump(mode="json")}, opts)
        engines = {plan.name: self._create_engine(plan, args.scaled, context) for plan in args.engines}
        routed = pulumi.ResourceOptions(parent=self, depends_on=list(engines.values()))
        behind = tuple(engines.values()) if args.set_id else ()
        router = Router(name, RouterArgs(model=args.model, set_id=args.set_id, engines=behind), context, routed)
        self.resources = PdServingResources(
            engines=engines,
            budgets={
                plan.name: declare(disruption_budget(plan.name, "engine", plan.selector, context), self, context)
                for plan in args.engines
            },
            router=router,
        )
        self.register_outputs({"router": router.resources.deployment.id})

    def _create_engine(self, plan: EnginePlan, scaled: bool, context: Context) -> pulumi.CustomResource:
        timeouts = engine_timeouts(plan, plan.placement.replicas)
        ignored = ["spec.replicas"] if scaled else None
        return declare(deployment(plan, context), self, context, custom_timeouts=timeouts, ignore_changes=ignored)


def deployment(plan: EnginePlan, context: Context) -> Manifest:
    """The engines of one role on one pool.

    Where a scaler owns `replicas`, they are to begin with and ignored from then on: taken out of a running stack's
    manifest they would fall to 1 (kubernetes/kubernetes#67135), kept in it the next update would fail (pulumi-kubernetes#2491).
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(plan.name, "engine"),
        "spec": {
            "replicas": plan.placement.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": rollout_seconds(plan, plan.placement.replicas),
            "selector": {"matchLabels": dict(plan.selector)},
            "template": engine_template(plan.pod, plan.labels, plan.store_digest),
        },
    }


def engine_timeouts(plan: EnginePlan, replicas: int) -> pulumi.CustomTimeouts:
    """How long Pulumi waits for so many of the plan's pods to come and change."""
    seconds = f"{rollout_seconds(plan, replicas)}s"
    return pulumi.CustomTimeouts(create=seconds, update=seconds)


def rollout_seconds(plan: EnginePlan, replicas: int) -> int:
    """How long a rollout of so many of the plan's pods may take."""
    return timing.rollout_seconds(plan.pod.load_seconds, plan.model.longest_request_seconds, replicas)
