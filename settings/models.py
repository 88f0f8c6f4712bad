"""Served models: weights, engine, roles, routing."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from rules.chips import Connector
from rules.quantity import parse
from settings.base import Bytes, Cpu, DnsLabel, Group, ModelName, Port
from settings.kthena import RouteSettings
from settings.plain_input import LINES
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
    """The number format of weights and KV, part of the KV identity."""
    quantization: str | None = None
    """vLLM's name of the quantisation, part of the KV identity."""
    block_size: int = Field(default=16, ge=1, le=256)
    """Tokens of a KV block, part of the KV identity."""
    max_model_len: int = Field(default=32_768, ge=256, le=10_000_000)
    """Tokens of prompt and answer together, at most."""
    max_num_seqs: int = Field(default=256, ge=1, le=65_536)
    """Requests in a pod's batch, at most."""
    hash_seed: int = Field(default=0, ge=0, le=2**32 - 1)
    """Seed of the block hashes (PYTHONHASHSEED): sharers of a store must agree on it."""
    extra_args: Annotated[tuple[str, ...], LINES] = ()
    """More flags of the engine; those that settings already say are refused."""


class RoleSettings(Group):
    """One role of a model on one pool."""

    pool: DnsLabel
    """Name of the node pool."""
    replicas: int = Field(ge=0, le=10_000)
    """Engines (pods, or with backend kthena per group); where a scaler owns them, only what to start with."""
    chips: int = Field(ge=0, le=64)
    """Chips a pod (tensor parallel size, times `nodes`, unless given)."""
    nodes: int = Field(default=1, ge=1, le=16)
    """Pods that form one engine together, for models larger than a node; backend kthena only."""
    tensor_parallel: int | None = Field(default=None, ge=1, le=1024)
    """Chips that one engine splits a layer over; `chips` times `nodes` when not given."""
    cpu: Cpu = "4"
    """CPU that the pod requests."""
    memory: Bytes = "32Gi"
    """Memory that the pod requests."""
    memory_limit: Bytes | None = None
    """Memory at which the pod is ended; `memory`, which it reserves, when not given."""

    @model_validator(mode="after")
    def _limit_holds_the_request(self) -> "RoleSettings":
        if self.memory_limit is not None and parse(self.memory_limit) < parse(self.memory):
            raise ValueError(
                f"memoryLimit {self.memory_limit} is below memory {self.memory}; raise it, or leave it out"
            )
        return self


Placements = Annotated[
    tuple[RoleSettings, ...],
    BeforeValidator(_one_or_many, json_schema_input_type=RoleSettings | tuple[RoleSettings, ...]),
]


class RouterSettings(Group):
    """The vllm-routers of a model (backend native)."""

    replicas: int = Field(default=2, ge=1, le=1000)
    """Router pods."""
    policy: Literal["cache_aware", "round_robin", "power_of_two", "random"] = "cache_aware"
    """How a router chooses an engine."""


class ModelSettings(Group):
    """One model served in the cluster."""

    name: ModelName
    """The public name that callers send as `model`."""
    shape: Literal["pd", "aggregated"] = "pd"
    """pd: prefill and decode apart; aggregated: engines that do both."""
    backend: Literal["native", "kthena"] = "native"
    """native: Deployments and vllm-router; kthena: ModelServing, ModelServer and ModelRoute."""
    weights: WeightsSettings
    engine: EngineSettings = EngineSettings()
    connector: Connector = "mooncake-store"
    """How KV moves from prefill to decode; docs/serving.md says which ones chips and routers support."""
    prefill: Placements = ()
    """Where prompts are computed: one placement, or a list over several pools."""
    decode: Placements = ()
    """Where answers are generated: one placement, or a list."""
    serve: Placements = ()
    """Shape aggregated: where the engines run, one placement or a list."""
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
    rollout: Literal["surge", "blueGreen"] = "surge"
    """Backend native, how engines change: surge: one pod of each role after the other; blueGreen: prefill, decode and routers as one
    new set beside the old one, where the pools have room for both."""
    longest_request_seconds: int = Field(default=600, ge=1, le=86_400)
    """How long an answer may take: timeouts, grace periods and drains follow from it."""

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
