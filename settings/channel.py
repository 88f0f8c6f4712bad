"""The external channel: A3's `[channel]`, `[channel.retry]`, `[channel.ratelimit]`, `[moe]`, `[chip]`, and A4's models."""

from typing import Annotated, Literal

from pydantic import AnyHttpUrl, Field

from rules.channel_panels import Price
from settings.base import DnsLabel, Group, HostPort, ModelName

Chip = Literal["ascend", "nvidia", "xuantie"]
Status = Annotated[int, Field(ge=400, le=599)]


class RetrySettings(Group):
    """Attempts count in total; backoff is jittered from 0 to the step (Envoy has no lower bound)."""

    max_attempts: int = Field(default=3, ge=1, le=10)
    """Attempts of a request in total, in the cluster and at the channel."""
    backoff_base_ms: int = Field(default=200, ge=1, le=300_000)
    """First step of the pause between attempts."""
    backoff_max_ms: int = Field(default=2000, ge=1, le=300_000)
    """Largest step."""
    retry_on_status: tuple[Status, ...] = (429, 500, 502, 503, 504)
    """Answers that are tried again elsewhere."""


class RateLimitSettings(Group):
    """What one gateway pod may send to the channel."""

    qps_per_pod: int = Field(default=120, ge=1, le=1_000_000)
    """Requests a second."""
    burst: int = Field(default=240, ge=1, le=1_000_000)
    """Requests at once."""


class MoeSettings(Group):
    """How an alias chooses among its targets."""

    routing_strategy: Literal["cost_optimized", "load_balanced", "latency_optimized"] = "cost_optimized"
    """By chip price, by open requests, or by the time to the first token."""
    max_experts_per_request: int = Field(default=4, ge=1, le=16)
    """Targets that one request tries, at most."""
    expert_load_threshold: float = Field(default=0.85, gt=0, le=1)
    """Share of its concurrency budget from which a target is passed over at first."""


class ChipSettings(Group):
    """Which chips are tried first."""

    preference: tuple[Chip, ...] = ("ascend", "nvidia", "xuantie")
    """Order among targets of equal price."""
    health_check_interval_seconds: int = Field(default=10, ge=1, le=3600)
    """How often the models' routers are asked whether they are well."""


class ChannelSettings(Group):
    """The one OpenAI-compatible service outside the cluster."""

    enabled: bool = True
    """Whether there is a channel; without it a request ends at the cluster."""
    base_url: AnyHttpUrl = AnyHttpUrl("https://taotoken.net/api")
    """Its base URL, `/v1/…` left out."""
    provider: str = "taotoken"
    """Its name, for settings.json."""
    key: DnsLabel | None = None
    """Id of the outbound key (group keys) that the gateway presents."""
    api_key_env: str = "TAOTOKEN_API_KEY"
    """Name of the variable that config.toml gives for the key; never the key."""
    connect_timeout_ms: int = Field(default=3000, ge=1, le=300_000)
    """Until a connection stands."""
    read_timeout_ms: int = Field(default=30_000, ge=1, le=86_400_000)
    """Silence of a streamed answer after which it is given up."""
    max_idle_conns: int = Field(default=256, ge=1, le=1_000_000)
    """Open connections of a gateway pod, at most."""
    max_idle_conns_per_host: int = Field(default=64, ge=1, le=1_000_000)
    """The same for one address of the channel."""
    max_concurrent: int = Field(default=1024, ge=1, le=1_000_000)
    """Concurrency budget: requests that one gateway pod may have open at the channel."""
    longest_request_seconds: int = Field(default=600, ge=1, le=86_400)
    """How long an answer that is not streamed may take: it has no first byte before its last."""
    proxy: HostPort | None = None
    """host:port of an HTTP proxy that the channel is reached through (CONNECT); TLS goes through it untouched."""
    daily_requests: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Cap on what all gateway pods together send to the channel in a day; above it the channel is answered for with 429."""
    quota_qps: int = Field(default=30_720, ge=1, le=100_000_000)
    """What the channel's contract allows in total; gateway maximum × qpsPerPod must stay within (A8)."""
    retry: RetrySettings = RetrySettings()
    """What is tried again."""
    ratelimit: RateLimitSettings = RateLimitSettings()
    """What one gateway pod may send."""
    moe: MoeSettings = MoeSettings()
    """How aliases choose."""
    chip: ChipSettings = ChipSettings()
    """Which chips come first."""


class ChannelModel(Group):
    """One alias of the channel's model list."""

    alias: ModelName
    """The public name."""
    model_name: ModelName
    """The model's exact name at the channel."""
    max_tokens: int = Field(ge=1, le=10_000_000)
    """Put into a chat body that lacks it."""
    temperature: float = Field(ge=0, le=2)
    """Put into a chat body that lacks it."""
    weight: float = Field(gt=0, le=1)
    """Share of the group's requests; all weights sum to 1."""
    chip_affinity: tuple[Chip, ...]
    """Chips on which the cluster may serve it."""
    in_cluster: ModelName | None = None
    """The model of this stack that is the same; the one called `modelName` when not given."""
    price_per_million_input: float = Field(default=0, ge=0, le=1_000_000)
    """Yuan for a million prompt tokens at the channel."""
    price_per_million_output: float = Field(default=0, ge=0, le=1_000_000)
    """Yuan for a million answer tokens at the channel."""


class FallbackSettings(Group):
    """Order in which aliases stand in for one another."""

    enabled: bool = True
    """Whether other aliases step in for one that fails."""
    order: tuple[ModelName, ...] = ("moe-expert-a", "moe-expert-c", "moe-expert-b", "moe-expert-d")
    """Aliases in the order in which they step in."""


class ChannelObservability(Group):
    """What the channel's settings.json says about metrics."""

    record_token_usage: bool = True
    """Count tokens by model."""
    record_latency_per_model: bool = True
    """Keep latency histograms by model."""
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
    """The channel's models, as its settings.json lists them (A4)."""

    channel_version: str = "v1"
    """The version that settings.json states."""
    group: ModelName = "moe"
    """The name that stands for all aliases: each request goes to one of them by the routing strategy."""
    models: tuple[ChannelModel, ...] = DEFAULT_MODELS
    """The aliases; the four experts of settings/channel.py when not given."""
    fallback: FallbackSettings = FallbackSettings()
    """Who stands in."""
    observability: ChannelObservability = ChannelObservability()
    """What is measured."""

    @property
    def prices(self) -> tuple[Price, ...]:
        """What each model costs at the channel."""
        return tuple(
            Price(model.model_name, model.price_per_million_input, model.price_per_million_output)
            for model in self.models
        )
