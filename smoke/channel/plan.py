"""How the channel for tests behaves: plain data that can be replaced while it runs."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class _Plan(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KeyPlan(_Plan):
    """One key that is accepted, with its quotas."""

    id: str
    value: SecretStr
    qps: float | None = Field(default=None, gt=0)
    """Requests a second, with a burst of the same size."""
    requests: int | None = Field(default=None, ge=0)
    """Requests in total; the next one is refused with 429."""
    enabled: bool = True


class Fault(_Plan):
    """A fault for chat requests. `share` of them (evenly spaced, no dice) are hit."""

    kind: Literal["status", "hang", "cut", "no-done", "garbage", "buffered", "no-choices"]
    status: int = Field(default=503, ge=400, le=599)
    share: float = Field(default=1.0, gt=0, le=1)
    model: str | None = None


class ChannelPlan(_Plan):
    """Models, keys, speed, faults. Times in seconds, speeds in tokens a second."""

    models: tuple[str, ...]
    keys: tuple[KeyPlan, ...]
    first_token_seconds: float = Field(default=0.0, ge=0)
    token_seconds: float = Field(default=0.0, ge=0)
    prefill_tokens_per_second: float | None = Field(default=None, gt=0)
    """Prompt tokens that no earlier prompt had in its prefix take this long; None: no time at all."""
    prefix_cache: bool = True
    max_body_bytes: int = Field(default=4 * 2**20, ge=1)
    faults: tuple[Fault, ...] = ()
    upstream: str | None = None
    """Base URL of a real engine that answers instead; keys, quotas and faults stay ours."""
