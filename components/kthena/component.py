"""A model served by Kthena: ModelServing, ModelServer, ModelRoute and, where Kthena scales, its policies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from components.context import Context
from components.disruption import groups_budget
from components.kthena.autoscaling import autoscaling_objects
from components.kthena.networking import model_route, model_server
from components.kthena.serving import model_serving, restart_grace_seconds
from components.objects import declare
from components.serving_plan import EnginePlan
from rules import kthena, labels, names, timing
from rules.serving_replicas import Running, changed, with_digest, with_replicas
from settings.autoscaling import EngineScaling
from settings.kthena import KthenaSettings
from settings.models import ModelSettings

FORCE: Final = {"pulumi.com/patchForce": "true"}
"""Whoever writes one field of a role owns the list of roles (rules/serving_replicas.py)."""
WAIT_FOR: Final = {"pulumi.com/waitFor": "condition=Available"}
"""Pulumi doesn't await custom resources by itself: without this, the smoke test would meet engines that still load."""
WAIT_FOR_SCALER: Final = {"pulumi.com/waitFor": "condition=Ready"}
"""Only 1.0 gives its policies a status."""


@dataclass(frozen=True, kw_only=True)
class KthenaServingArgs:
    """The model, one engine plan a role, and Kthena's settings; `scaling` is given where Kthena owns the replicas."""

    model: ModelSettings
    engines: tuple[EnginePlan, ...]
    kthena: KthenaSettings
    scaling: EngineScaling | None = None
    running: Running | None = None
    """Where it is scaled: what of it runs now, None when it isn't there or nobody could look."""


@dataclass(frozen=True, kw_only=True)
class KthenaServingResources:
    """The model's objects; `scalers` are empty where nothing scales, and one group alone has no budget: a drain goes on."""

    serving: pulumi.CustomResource
    server: pulumi.CustomResource
    route: pulumi.CustomResource
    scalers: tuple[pulumi.CustomResource, ...]
    budget: pulumi.CustomResource | None


class KthenaServing(pulumi.ComponentResource):
    """Prefill and decode (or aggregated) engines of one model on Kthena."""

    resources: KthenaServingResources

    def __init__(
        self, name: str, args: KthenaServingArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:serving:KthenaServing", name, {"model": args.model.model_dump(mode="json")}, opts)
        for note in kthena.notes(args.kthena.release, args.model.groups, args.model.shape):
            pulumi.log.info(f"model {args.model.name}: {note}", self)
        serving = self._create_serving(args, context)
        server = declare(model_server(args.model, args.kthena, context).manifest(), self, context)
        self.resources = KthenaServingResources(
            serving=serving,
            server=server,
            route=declare(model_route(args.model, context).manifest(), self, context, depends_on=[serving, server]),
            scalers=self._create_scalers(args, serving, context),
            budget=self._create_budget(args, context),
        )
        self.register_outputs({"route": self.resources.route.id})

    def _create_serving(self, args: KthenaServingArgs, context: Context) -> pulumi.CustomResource:
        manifest = model_serving(args.model, args.engines, args.kthena, context).manifest()
        manifest["metadata"]["annotations"] = FORCE | (WAIT_FOR if args.kthena.wait else {})
        owned: list[str] = []
        if args.scaling:
            manifest = with_digest(manifest, context.image_pull_secret)
            if args.running and changed(manifest, args.running):
                manifest = with_replicas(manifest, args.running, _bounds(args.scaling, args.engines))
            else:
                owned = [f"spec.template.roles[{index}].replicas" for index in range(len(args.engines))]
        seconds = f"{_await_seconds(args)}s"
        timeouts = pulumi.CustomTimeouts(create=seconds, update=seconds)
        return declare(manifest, self, context, custom_timeouts=timeouts, ignore_changes=owned)

    def _create_budget(self, args: KthenaServingArgs, context: Context) -> pulumi.CustomResource | None:
        groups, name = args.model.groups, names.model_serving(args.model.name)
        if groups < 2:
            return None
        selector = {labels.MODEL: names.slug(args.model.name), "app.kubernetes.io/component": "engine"}
        return declare(groups_budget(name, selector, groups, _group_pods(args), context), self, context)

    def _create_scalers(
        self, args: KthenaServingArgs, serving: pulumi.CustomResource, context: Context
    ) -> tuple[pulumi.CustomResource, ...]:
        if args.scaling is None:
            return ()
        created: list[pulumi.CustomResource] = []
        for scaler in autoscaling_objects(args.model, args.scaling, args.kthena.release, context):
            manifest = scaler.manifest()
            if args.kthena.wait and args.kthena.release == "1.0":
                manifest["metadata"]["annotations"] = WAIT_FOR_SCALER
            created.append(declare(manifest, self, context, depends_on=[serving, *created]))
        return tuple(created)


def _group_pods(args: KthenaServingArgs) -> int:
    """Pods of a group, as few as its scaler leaves."""
    engines = {
        plan.role: args.scaling.bounds(plan.role)[0] if args.scaling else plan.placement.replicas
        for plan in args.engines
    }
    return sum(engines[plan.role] * plan.placement.nodes for plan in args.engines)


def _bounds(scaling: EngineScaling, engines: Sequence[EnginePlan]) -> dict[str, tuple[int, int]]:
    return {plan.role: scaling.bounds(plan.role) for plan in engines}


def _await_seconds(args: KthenaServingArgs) -> int:
    """All groups, one after the other: each loads its weights, and the old one drains first, as there is no surge."""
    one = restart_grace_seconds(args.model, args.engines) + timing.grace_seconds(args.model.longest_request_seconds)
    return one * args.model.groups
