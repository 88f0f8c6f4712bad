"""The Kthena release of the cluster and its router, for models of backend kthena."""

from typing import Literal

from pydantic import Field, model_validator

from rules.kthena import Release
from settings.base import Group, ModelName


class KthenaSettings(Group):
    """Kthena is a prerequisite of backend kthena: checked, never installed."""

    release: Release = "0.4"
    """The cluster's Kthena release: fields and kinds differ."""
    scheduler: Literal["volcano", "default-scheduler"] = "volcano"
    """Without Volcano, pods that name it stay Pending."""
    gang: bool = True
    """Start a group only when one engine of each role fits, with all its nodes; needs Volcano. False: each engine for itself. Immutable."""
    topology_tier: int | None = Field(default=None, ge=1, le=100)
    """Highest tier of Volcano's HyperNode tree that a group may span; needs Volcano."""
    recovery: Literal["RoleRecreate", "ServingGroupRecreate", "None"] = "ServingGroupRecreate"
    """ServingGroupRecreate: peers of a restarted pod keep stale transfer state (vllm-project/vllm#49238)."""
    wait: bool = Field(default=True, alias="await")
    """Whether a deployment counts as done only once Kthena says that the engines are available."""
    timeout_seconds: int = Field(default=300, ge=1, le=86_400)
    """trafficPolicy.timeout; 0.4 stores and ignores it."""
    retry_attempts: int = Field(default=3, ge=0, le=10)
    """trafficPolicy.retry.attempts; 0.4 stores and ignores it."""
    retry_interval_ms: int = Field(default=150, ge=1, le=300_000)
    """trafficPolicy.retry.retryInterval; 0.4 stores and ignores it."""

    @model_validator(mode="after")
    def _gangs_need_volcano(self) -> "KthenaSettings":
        if self.scheduler != "volcano" and self.topology_tier is not None:
            raise ValueError("topologyTier needs scheduler volcano; remove it or change the scheduler")
        if self.scheduler != "volcano" and self.gang:
            raise ValueError("gang needs scheduler volcano; set gang to false or change the scheduler")
        return self


class RouteTarget(Group):
    """Another model of backend kthena that takes a share of this model's requests."""

    model: ModelName
    """Its name in `models`."""
    weight: int = Field(default=100, ge=0, le=100)
    """Its share."""


class RouteRateLimit(Group):
    """Tokens per unit that Kthena's router lets through for this model; its counts are estimates."""

    input_tokens: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Prompt tokens a unit."""
    output_tokens: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Answer tokens a unit."""
    unit: Literal["second", "minute", "hour", "day", "month"] = "minute"
    """The unit of time."""

    @model_validator(mode="after")
    def _limits_something(self) -> "RouteRateLimit":
        if self.input_tokens is None and self.output_tokens is None:
            raise ValueError("limits nothing; give inputTokens or outputTokens, or remove it")
        return self


class RouteSettings(Group):
    """The model's ModelRoute."""

    weight: int = Field(default=100, ge=0, le=100)
    """The model's own share."""
    targets: tuple[RouteTarget, ...] = Field(default=(), max_length=15)
    """Models that take shares beside it, such as a canary."""
    rate_limit: RouteRateLimit | None = None
    """Tokens that the router lets through."""
