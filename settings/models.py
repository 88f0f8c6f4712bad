"""Served models: weights, engine, roles, routing."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from rules.chips import Connector
from settings.base import DnsLabel, Group, ModelName, Port, Quantity
from settings.kthena import RouteSettings
from settings.weights import WeightsSettings


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class EngineSettings(Group):
    """How the engine runs; the same for every pod that shares a KV cache."""

    build: Literal["chip", "cpu"] = "chip"
    """chip: the engine of the pool's chip; cpu: the CPU engine on the same chip requests, for development."""
    version: str | None = None
    """vLLM's version in the engine image, part of the KV identity; that of rules/versions.py for the chip when not given."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "bfloat16"
    quantization: str | None = None
    block_size: int = Field(default=16, ge=1, le=256)
    max_model_len: int = Field(default=32_768, ge=256)
    max_num_seqs: int = Field(default=256, ge=1)
    hash_seed: int = Field(default=0, ge=0)
    extra_args: tuple[str, ...] = ()


class RoleSettings(Group):
    """One role of a model on one pool."""

    pool: DnsLabel
    replicas: int = Field(ge=0, le=10_000)
    chips: int = Field(ge=0, le=64)
    """Chips a pod (tensor parallel size, times `nodes`, unless given)."""
    nodes: int = Field(default=1, ge=1, le=16)
    """Pods that form one engine together, for models larger than a node; backend kthena only."""
    tensor_parallel: int | None = Field(default=None, ge=1)
    cpu: Quantity = "4"
    memory: Quantity = "32Gi"
    memory_limit: Quantity | None = None
    """Memory at which the pod is ended; `memory`, which it reserves, when not given."""


Placements = Annotated[tuple[RoleSettings, ...], BeforeValidator(_one_or_many)]


class RouterSettings(Group):
    """The vllm-routers of a model (backend native)."""

    replicas: int = Field(default=2, ge=1)
    policy: Literal["cache_aware", "round_robin", "power_of_two", "random"] = "cache_aware"


class ModelSettings(Group):
    """One model served in the cluster."""

    name: ModelName
    shape: Literal["pd", "aggregated"] = "pd"
    backend: Literal["native", "kthena"] = "native"
    weights: WeightsSettings
    engine: EngineSettings = EngineSettings()
    connector: Connector = "mooncake-store"
    prefill: Placements = ()
    decode: Placements = ()
    serve: Placements = ()
    groups: int = Field(default=1, ge=1, le=1000)
    """Kthena's serving groups: each holds the replicas of every role, and KV moves within a group only."""
    kv_port: Port | None = None
    """First handshake port of a peer-to-peer connector; above the chip's own transport range when not given."""
    route: RouteSettings = RouteSettings()
    """The share of requests and the token limit at Kthena's router."""
    priority: Literal["low", "normal", "high"] = "normal"
    """Which engines the scheduler places first, and whose room it may take, when chips are short."""
    pre_pull: bool = False
    """Keep the engine's image on every node of the model's pools (10 GB packed), so that a new pod starts without the pull."""
    router: RouterSettings = RouterSettings()
    longest_request_seconds: int = Field(default=600, ge=1, le=86_400)

    @model_validator(mode="after")
    def _roles_fit_the_shape(self) -> "ModelSettings":
        if self.shape == "pd" and (not self.prefill or not self.decode or self.serve):
            raise ValueError(
                "shape pd needs prefill and decode and takes no serve; add the missing role or use shape aggregated"
            )
        if self.shape == "aggregated" and (not self.serve or self.prefill or self.decode):
            raise ValueError("shape aggregated needs serve and takes no prefill or decode; move the placement to serve")
        return self

    def roles(self) -> dict[str, tuple[RoleSettings, ...]]:
        """Role name → placements, only the roles that the shape has."""
        if self.shape == "pd":
            return {"prefill": self.prefill, "decode": self.decode}
        return {"serve": self.serve}
