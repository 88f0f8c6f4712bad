"""From settings to the engine pods of every model: the one place where a role becomes a pod, whatever the backend."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from components.engine_launch import engine_launch
from components.engine_set import with_sets
from components.kv_store import KvStoreArgs, store_digest, store_environment
from components.pods.engine import EngineBuild, EnginePod, engine_spec
from components.pods.placement import near_its_group, spread_over_hosts
from components.weights import pod_weights
from rules import labels, names
from rules.chips import CHIPS, ChipProfile, engine_chip
from rules.kv_transport import store_protocol
from settings.autoscaling import Role
from settings.capacity_plan import load_seconds
from settings.local_runtime import LocalRuntime
from settings.models import ModelSettings, RoleSettings
from settings.node_pools import NodePoolSettings
from settings.settings import Settings

ENGINE_MOUNT = "engine"


@dataclass(frozen=True, kw_only=True)
class EnginePlan:
    """One role of a model on one pool."""

    name: str
    model: ModelSettings
    role: Role
    placement: RoleSettings
    pool: NodePoolSettings
    pod: EnginePod
    selector: Mapping[str, str]
    labels: Mapping[str, str]
    store_digest: str
    set_id: str = ""
    """Which set of its model the role belongs to, for a model that changes as a whole (components/engine_set.py)."""


def engine_plans(
    settings: Settings, images: Mapping[str, str], runtime: LocalRuntime | None, stack: str
) -> list[EnginePlan]:
    """Every engine of the stack. `runtime` is needed by development models and the CPU engine."""
    pools = {pool.name: pool for pool in settings.node_pools}
    return with_sets(
        [
            _plan(settings, model, role, placement, pools[placement.pool], images, runtime, stack)
            for model in settings.models
            for role, placements in model.roles().items()
            for placement in placements
        ]
    )


def _plan(
    settings: Settings,
    model: ModelSettings,
    role: str,
    placement: RoleSettings,
    pool: NodePoolSettings,
    images: Mapping[str, str],
    runtime: LocalRuntime | None,
    stack: str,
) -> EnginePlan:
    weights = pod_weights(model, runtime, images.get("capacity"))
    chip = engine_chip(pool.chip, model.engine.build)
    store = KvStoreArgs(settings=settings.kv_store, protocol=store_protocol(settings.kv_store.protocol, chip))
    stack_of_pool = CHIPS[pool.chip].stack(pool.driver_stack)
    name = names.engine(model.name, role, pool.name)
    selector = labels.engine_selector(names.slug(model.name), role, pool.name)
    pod = EnginePod(
        launch=engine_launch(settings, model, role, placement, pool, weights),
        build=engine_build(model, chip, images, runtime),
        chip=chip,
        resource=stack_of_pool.resource if stack_of_pool else None,
        chips=placement.chips,
        cpu=placement.cpu,
        memory=placement.memory,
        memory_limit=placement.memory_limit or placement.memory,
        weights=weights,
        store=store.name,
        store_environment=store_environment(store, settings.cluster.namespace),
        load_seconds=load_seconds(model, chip),
        node_selector=pool.node_selector(),
        tolerations=tuple(taint.toleration() for taint in pool.tolerations),
        priority_class=names.priority(model.priority, settings.cluster.namespace),
        affinity=near_its_group(names.slug(model.name), pool.topology_key) if model.shape == "pd" else None,
        topology_spread=spread_over_hosts(selector),
        rdma_resource=pool.rdma_resource,
    )
    return EnginePlan(
        name=name,
        model=model,
        role=cast(Role, role),
        placement=placement,
        pool=pool,
        pod=pod,
        selector=selector,
        labels=labels.recommended(name, "engine", stack)
        | selector
        | {labels.ROUTED: "true", labels.REVISION: weights.revision[:12]},
        store_digest=store_digest(store, settings.cluster.namespace),
    )


def engine_build(
    model: ModelSettings, chip: ChipProfile, images: Mapping[str, str], runtime: LocalRuntime | None
) -> EngineBuild:
    """The engine's program: the chip's image, or the CPU engine's folder on the host."""
    if chip.engine_image is None:
        raise ValueError(f"{chip.title} has no engine; its models go to the external channel")
    image = images[chip.engine_image]
    if model.engine.build != "cpu" or runtime is None:
        return EngineBuild(image=image)
    engine = runtime.engine
    return EngineBuild(
        image=image,
        command=engine.command,
        environment=engine.environment,
        volumes=({"name": ENGINE_MOUNT, "hostPath": {"path": engine.host_path, "type": "Directory"}},),
        mounts=({"name": ENGINE_MOUNT, "mountPath": engine.mount_path, "readOnly": True},),
    )


def pod_security_level(plans: list[EnginePlan]) -> str:
    """The strictest Pod Security Standard that the engines allow: a folder of the host needs `privileged`."""
    volumes = [volume for plan in plans for volume in engine_spec(plan.pod)["volumes"]]
    return "privileged" if any("hostPath" in volume for volume in volumes) else "restricted"
