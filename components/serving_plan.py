"""From settings to the engine pods of every model: the one place where a role becomes a pod, whatever the backend."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.kv_store import store_digest
from components.node_pool import node_selector
from components.pods.engine import EngineBuild, EnginePod, engine_spec
from rules import labels, names, timing
from rules.chips import CHIPS, ChipProfile
from rules.engine import EngineLaunch
from rules.kv_identity import KvIdentity, mount_path
from rules.quantity import to_bytes
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
    role: str
    placement: RoleSettings
    pool: NodePoolSettings
    pod: EnginePod
    selector: Mapping[str, str]
    labels: Mapping[str, str]
    store_digest: str


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Where a model's weights are for the pods: the volume, and the revision that is really there."""

    volume: dict[str, Any]
    revision: str


def engine_plans(
    settings: Settings, images: Mapping[str, str], runtime: LocalRuntime | None, stack: str
) -> list[EnginePlan]:
    """Every engine of the stack. `runtime` is needed by development models and the CPU engine."""
    pools = {pool.name: pool for pool in settings.node_pools}
    return [
        _plan(settings, model, role, placement, pools[placement.pool], images, runtime, stack)
        for model in settings.models
        for role, placements in model.roles().items()
        for placement in placements
    ]


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
    weights = weights_of(model, runtime)
    chip = engine_chip(model, pool)
    stack_of_pool = CHIPS[pool.chip].stack(pool.driver_stack)
    name = names.engine(model.name, role, pool.name)
    selector = labels.engine_selector(names.slug(model.name), role, pool.name)
    pod = EnginePod(
        launch=_launch(settings, model, role, placement, weights),
        build=engine_build(model, chip, images, runtime),
        chip=chip,
        resource=stack_of_pool.resource if stack_of_pool else None,
        chips=placement.chips,
        cpu=placement.cpu,
        memory=placement.memory,
        weights_volume=weights.volume,
        load_seconds=load_seconds(model, chip),
        node_selector=node_selector(pool),
        tolerations=tuple(t.model_dump(exclude_none=True) for t in pool.tolerations),
    )
    return EnginePlan(
        name=name,
        model=model,
        role=role,
        placement=placement,
        pool=pool,
        pod=pod,
        selector=selector,
        labels=labels.recommended(name, "engine", stack)
        | selector
        | {labels.ROUTED: "true", labels.REVISION: weights.revision[:12]},
        store_digest=store_digest(settings.kv_store, settings.cluster.namespace),
    )


def _launch(
    settings: Settings, model: ModelSettings, role: str, placement: RoleSettings, weights: Weights
) -> EngineLaunch:
    engine = model.engine
    return EngineLaunch(
        model=model.name,
        path=mount_path(names.slug(model.name), weights.revision),
        role=role,
        connector=model.connector if settings.kv_store.enabled else "none",
        cache_prefix=kv_identity(settings, model, weights).digest(),
        dtype=engine.dtype,
        block_size=engine.block_size,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        tensor_parallel=placement.tensor_parallel or (placement.chips if engine.build == "chip" else 1) or 1,
        hash_seed=engine.hash_seed,
        longest_request_seconds=model.longest_request_seconds,
        quantization=engine.quantization,
        enforce_eager=engine.build == "cpu",
        extra_args=engine.extra_args,
    )


def kv_identity(settings: Settings, model: ModelSettings, weights: Weights) -> KvIdentity:
    """What all sharers of the model's KV must agree on."""
    engine = model.engine
    return KvIdentity(
        model=model.name,
        revision=weights.revision,
        tokenizer=weights.revision,
        dtype=engine.dtype,
        quantization=engine.quantization or "",
        engine_version=engine.version,
        block_size=engine.block_size,
        environment=settings.environment,
    )


def engine_chip(model: ModelSettings, pool: NodePoolSettings) -> ChipProfile:
    """The profile whose engine really runs: the pool's chip, or the CPU in place of it."""
    return CHIPS["cpu"] if model.engine.build == "cpu" else CHIPS[pool.chip]


def load_seconds(model: ModelSettings, chip: ChipProfile) -> int:
    """Expected seconds from container start to a loaded model."""
    bandwidth = model.weights.load_bandwidth
    return timing.load_seconds(
        to_bytes(model.weights.size),
        to_bytes(bandwidth) if bandwidth else chip.load_bytes_per_second,
        chip.engine_start_seconds,
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


def weights_of(model: ModelSettings, runtime: LocalRuntime | None) -> Weights:
    """The volume that holds a model's weights, and their revision."""
    weights = model.weights
    if weights.source == "development":
        if runtime is None or weights.location not in runtime.models:
            known = ", ".join(runtime.models) if runtime else "none: run `make up`"
            raise ValueError(
                f"moonstack:models {model.name}: no development model {weights.location!r}; known: {known}"
            )
        made = runtime.models[weights.location]
        return Weights(volume={"hostPath": {"path": made.path, "type": "Directory"}}, revision=made.revision)
    if weights.source == "hostPath":
        return Weights(volume={"hostPath": {"path": weights.location, "type": "Directory"}}, revision=weights.revision)
    if weights.source == "pvc":
        claim, _, _ = weights.location.partition("/")
        return Weights(
            volume={"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}, revision=weights.revision
        )
    raise ValueError(f"moonstack:models {model.name}: weights.source {weights.source!r} has no volume rule")


def pod_security_level(plans: list[EnginePlan]) -> str:
    """The strictest Pod Security Standard that the engines allow: a folder of the host needs `privileged`."""
    volumes = [volume for plan in plans for volume in engine_spec(plan.pod)["volumes"]]
    return "privileged" if any("hostPath" in volume for volume in volumes) else "restricted"
