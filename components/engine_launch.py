"""How an engine is started, from the settings: sizes, KV transfer and KV identity are equal in all engines of a model."""

from components.pods.weights import PodWeights
from rules import names
from rules.chips import ChipProfile, engine_chip
from rules.connectors import store_companion
from rules.engine import EngineLaunch
from rules.kv_identity import KvIdentity, mount_path
from rules.kv_transfer import KvTransfer
from rules.kv_transport import default_kv_port
from rules.versions import ENGINES
from settings.models import ModelSettings, RoleSettings
from settings.node_pools import NodePoolSettings
from settings.settings import Settings


def engine_launch(
    settings: Settings,
    model: ModelSettings,
    role: str,
    placement: RoleSettings,
    pool: NodePoolSettings,
    weights: PodWeights,
) -> EngineLaunch:
    """Everything that one engine process of a role is started with."""
    engine = model.engine
    chip = engine_chip(pool.chip, engine.build)
    transfer = kv_transfer(settings, model, role, pool, kv_identity(settings, model, chip, weights.revision).digest())
    ascend_store = "ascend-store" in (transfer.connector, transfer.companion)
    return EngineLaunch(
        model=model.name,
        path=mount_path(
            names.slug(model.name), weights.revision, identity=transfer.cache_prefix if ascend_store else ""
        ),
        transfer=transfer,
        dtype=engine.dtype,
        block_size=engine.block_size,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        tensor_parallel=tensor_parallel(model, placement),
        nodes=placement.nodes,
        hash_seed=engine.hash_seed,
        longest_request_seconds=model.longest_request_seconds,
        quantization=engine.quantization,
        enforce_eager=engine.build == "cpu",
        extra_args=engine.extra_args,
    )


def tensor_parallel(model: ModelSettings, placement: RoleSettings) -> int:
    """Chips that compute together; the CPU engine computes alone, whatever chips its pod asks for."""
    chips = placement.chips * placement.nodes if model.engine.build == "chip" else 1
    return placement.tensor_parallel or chips or 1


def kv_transfer(
    settings: Settings, model: ModelSettings, role: str, pool: NodePoolSettings, cache_prefix: str
) -> KvTransfer:
    """How the engines of a role exchange KV; without the store, a peer-to-peer connector works alone."""
    chip = engine_chip(pool.chip, model.engine.build)
    sizes = {name: tensor_parallel(model, placements[0]) for name, placements in model.roles().items()}
    return KvTransfer(
        connector=model.connector,
        companion=store_companion(model.connector, chip) if settings.kv_store.enabled else None,
        role=role,
        cache_prefix=cache_prefix,
        kv_port=model.kv_port or default_kv_port(chip, pool.chips_per_node),
        prefill_parallel=sizes.get(names.PREFILL, sizes.get(names.SERVE, 1)),
        decode_parallel=sizes.get(names.DECODE, sizes.get(names.SERVE, 1)),
    )


def kv_identity(settings: Settings, model: ModelSettings, chip: ChipProfile, revision: str) -> KvIdentity:
    """What all sharers of the model's KV must agree on."""
    engine = model.engine
    return KvIdentity(
        model=model.name,
        revision=revision,
        tokenizer=revision,
        dtype=engine.dtype,
        quantization=engine.quantization or "",
        engine_version=engine.version or engine_version(chip),
        block_size=engine.block_size,
        environment=settings.environment,
    )


def engine_version(chip: ChipProfile) -> str:
    """The vLLM of the chip's engine image (rules/versions.py). Raises ValueError for a chip without an engine."""
    if chip.engine_image is None:
        raise ValueError(f"{chip.title} has no engine; its models go to the external channel")
    return ENGINES[chip.engine_image].vllm
