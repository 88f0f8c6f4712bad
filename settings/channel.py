"""The external channel: A3's `[channel]`, `[channel.retry]`, `[channel.ratelimit]`, `[moe]`, `[chip]`, and A4's models."""

from typing import Annotated, Literal

from pydantic import AnyHttpUrl, Field

from settings.base import DnsLabel, Group, ModelName

Chip = Literal["ascend", "nvidia", "xuantie"]
Status = Annotated[int, Field(ge=400, le=599)]


class RetrySettings(Group):
    """Attempts count in total; backoff is jittered from 0 to the step (Envoy has no lower bound)."""

    max_attempts: int = Field(default=3, ge=1, le=10)
    backoff_base_ms: int = Field(default=200, ge=1)
    backoff_max_ms: int = Field(default=2000, ge=1)
    retry_on_status: tuple[Status, ...] = (429, 500, 502, 503, 504)


class RateLimitSettings(Group):
    """What one gateway pod may send to the channel."""

    qps_per_pod: int = Field(default=120, ge=1)
    burst: int = Field(default=240, ge=1)


class MoeSettings(Group):
    """How an alias chooses among its targets."""

    routing_strategy: Literal["cost_optimized", "load_balanced", "latency_optimized"] = "cost_optimized"
    max_experts_per_request: int = Field(default=4, ge=1, le=16)
    expert_load_threshold: float = Field(default=0.85, gt=0, le=1)


class ChipSettings(Group):
    """Which chips are tried first."""

    preference: tuple[Chip, ...] = ("ascend", "nvidia", "xuantie")
    health_check_interval_seconds: int = Field(default=10, ge=1)


class ChannelSettings(Group):
    """The one OpenAI-compatible service outside the cluster."""

    enabled: bool = True
    base_url: AnyHttpUrl = AnyHttpUrl("https://taotoken.net/api")
    provider: str = "taotoken"
    key: DnsLabel | None = None
    """Id of the outbound key (group keys) that the gateway presents."""
    api_key_env: str = "TAOTOKEN_API_KEY"
    connect_timeout_ms: int = Field(default=3000, ge=1)
    read_timeout_ms: int = Field(default=30_000, ge=1)
    max_idle_conns: int = Field(default=256, ge=1)
    max_idle_conns_per_host: int = Field(default=64, ge=1)
    max_concurrent: int = Field(default=1024, ge=1)
    """Concurrency budget: requests that one gateway pod may have open at the channel."""
    longest_request_seconds: int = Field(default=600, ge=1, le=86_400)
    """How long an answer that is not streamed may take: it has no first byte before its last."""
    proxy: str | None = Field(default=None, pattern=r"^[A-Za-z0-9.-]+:\d{1,5}$")
    """host:port of an HTTP proxy that the channel is reached through (CONNECT); TLS goes through it untouched."""
    daily_requests: int | None = Field(default=None, ge=1)
    """Cap on what all gateway pods together send to the channel in a day; above it the channel is answered for with 429."""
    quota_qps: int = Field(default=30_720, ge=1)
    """What the channel's contract allows in total; gateway maximum × qpsPerPod must stay within (A8)."""
    retry: RetrySettings = RetrySettings()
    ratelimit: RateLimitSettings = RateLimitSettings()
    moe: MoeSettings = MoeSettings()
    chip: ChipSettings = ChipSettings()


class ChannelModel(Group):
    """One alias of the channel's model list."""

    alias: ModelName
    model_name: ModelName
    max_tokens: int = Field(ge=1)
    temperature: float = Field(ge=0, le=2)
    weight: float = Field(gt=0, le=1)
    chip_affinity: tuple[Chip, ...]
    in_cluster: ModelName | None = None
    """The model of this stack that is the same; the one called `modelName` when not given."""
    price_per_million_input: float = Field(default=0, ge=0)
    """Yuan for a million prompt tokens at the channel."""
    price_per_million_output: float = Field(default=0, ge=0)
    """Yuan for a million answer tokens at the channel."""


class FallbackSettings(Group):
    """Order in which aliases stand in for one another."""

    enabled: bool = True
    order: tuple[ModelName, ...] = ("moe-expert-a", "moe-expert-c", "moe-expert-b", "moe-expert-d")


class ChannelObservability(Group):
    """What the channel's settings.json says about metrics."""

    record_token_usage: bool = True
    record_latency_per_model: bool = True
    export_interval_seconds: int = Field(default=15, ge=1, lt=300)
    """How often latency histograms are renewed for scraping; Envoy takes less than 5 minutes."""


DEFAULT_MODELS = (
    ChannelModel(
        alias="moe-expert-a",
        model_name="MiniMax-M2.5",
        max_tokens=4096,
        temperature=0.7,
        weight=0.3,
        chip_affinity=("ascend", "nvidia"),
    ),
    ChannelModel(
        alias="moe-expert-b",
        model_name="Kimi-K2.5",
        max_tokens=8192,
        temperature=0.6,
        weight=0.3,
        chip_affinity=("nvidia",),
    ),
    ChannelModel(
        alias="moe-expert-c",
        model_name="GLM-5",
        max_tokens=4096,
        temperature=0.7,
        weight=0.2,
        chip_affinity=("ascend", "xuantie"),
    ),
    ChannelModel(
        alias="moe-expert-d",
        model_name="DeepSeek-V3.2",
        max_tokens=8192,
        temperature=0.5,
        weight=0.2,
        chip_affinity=("nvidia", "ascend"),
    ),
)


class ChannelModelsSettings(Group):
    """A4's settings.json."""

    channel_version: str = "v1"
    group: ModelName = "moe"
    """The name that stands for all aliases: each request goes to one of them by the routing strategy."""
    models: tuple[ChannelModel, ...] = DEFAULT_MODELS
    fallback: FallbackSettings = FallbackSettings()
    observability: ChannelObservability = ChannelObservability()
