"""A model's ModelServing, from the same engine plans that backend native makes Deployments of."""

from collections.abc import Sequence

from components.context import Context
from components.kthena.crd.model_serving import (
    GangPolicy,
    ModelServing,
    ModelServingSpec,
    NetworkTopology,
    PodTemplate,
    Role,
    ServingGroup,
    TemplateMetadata,
    TopologyPolicy,
)
from components.pods.engine import engine_template, worker_template
from components.serving_plan import EnginePlan
from components.weights import fetch_seconds
from rules import names, timing
from settings.kthena import KthenaSettings
from settings.models import ModelSettings


def model_serving(
    model: ModelSettings, plans: Sequence[EnginePlan], settings: KthenaSettings, context: Context
) -> ModelServing:
    """The engines of one model; `plans` holds one plan a role."""
    name = names.model_serving(model.name)
    return ModelServing(
        metadata=context.metadata(name, "engine"),
        spec=ModelServingSpec(
            replicas=model.groups,
            scheduler_name=settings.scheduler,
            recovery_policy=settings.recovery,
            template=ServingGroup(
                restart_grace_period_seconds=restart_grace_seconds(model, plans),
                gang_policy=_gang(plans, settings),
                network_topology=_topology(settings),
                roles=tuple(_role(plan) for plan in plans),
            ),
        ),
    )


def restart_grace_seconds(model: ModelSettings, plans: Sequence[EnginePlan]) -> int:
    """How long Kthena waits for a restarted pod: shorter than the load time, it recreates the group for ever."""
    load = max(plan.pod.load_seconds for plan in plans) + fetch_seconds(model.weights)
    return max(timing.STARTUP_FLOOR_SECONDS, timing.STARTUP_SAFETY * load)


def _gang(plans: Sequence[EnginePlan], settings: KthenaSettings) -> GangPolicy | None:
    """One engine of each role: the policy is immutable, and may not exceed the replicas that a scaler leaves.

    Without a policy both releases make Volcano's PodGroup of all replicas of all roles, so no gang is written as none of each.
    """
    if settings.scheduler != "volcano":
        return None
    return GangPolicy(min_role_replicas={plan.role: int(settings.gang) for plan in plans})


def _topology(settings: KthenaSettings) -> NetworkTopology | None:
    if settings.topology_tier is None:
        return None
    return NetworkTopology(group_policy=TopologyPolicy(highest_tier_allowed=settings.topology_tier))


def _role(plan: EnginePlan) -> Role:
    workers = plan.placement.nodes - 1
    return Role(
        name=plan.role,
        replicas=plan.placement.replicas,
        worker_replicas=workers,
        entry_template=_template(engine_template(plan.pod, plan.labels, plan.store_digest)),
        worker_template=_template(worker_template(plan.pod, plan.labels, plan.store_digest)) if workers else None,
    )


def _template(template: dict) -> PodTemplate:
    metadata = template["metadata"]
    return PodTemplate(
        metadata=TemplateMetadata(labels=metadata["labels"], annotations=metadata["annotations"]),
        spec=template["spec"],
    )
