"""What a pulse showed: the three times, the criteria, and the timeline behind them."""

from datetime import datetime
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field


class Criterion(BaseModel):
    """One condition of success: a figure against its limit."""

    model_config = ConfigDict(frozen=True)

    name: str
    verdict: Literal["pass", "fail", "skip"]
    figure: float | None
    unit: str
    threshold: float
    cause: str | None = None
    fix: str | None = None


class Times(BaseModel):
    """Seconds from the start of the ramp; null where it did not happen."""

    model_config = ConfigDict(frozen=True)

    metric_over_target: float | None
    hpa_decision: float | None
    new_instance_serving: float | None


class Timeline(BaseModel):
    """Series of (seconds since the load's start, value)."""

    model_config = ConfigDict(frozen=True)

    users: list[tuple[float, float]]
    queue: list[tuple[float, float]]
    replicas: list[tuple[float, float]]
    warm: list[tuple[float, float]]
    kv_usage: list[tuple[float, float]]
    ttft: list[tuple[float, float]]


class PulseResult(BaseModel):
    """One pulse on one model of a stack. Schema 1."""

    model_config = ConfigDict(frozen=True)

    schema_version: Literal[1] = Field(
        default=1, validation_alias=AliasChoices("schema_version", "schema"), serialization_alias="schema"
    )
    stack: str
    model: str
    started: datetime
    verdict: Literal["pass", "fail"]
    times: Times
    criteria: list[Criterion]
    requests: int
    lost: int
    broken: int
    tokens_per_second: float
    cost_per_million_tokens: float | None
    """Yuan for chips, warm pool and channel, over the tokens of answers whose first came within the target; null without any."""
    channel_spend: float = 0.0
    """Yuan of it for answers that the channel gave, by declared prices."""
    channel_tokens_without_price: int = 0
    """Tokens of the channel that the cost lacks, as their model has no declared price."""
    timeline: Timeline
