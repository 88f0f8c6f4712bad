"""How the deployment is proven."""

from typing import Annotated, Literal

from pydantic import AnyHttpUrl, Field

from settings.base import Group
from settings.paths import local_port

Seconds = Annotated[float, Field(gt=0, le=86_400)]
Way = Literal["endpoint", "port-forward", "job"]
"""endpoint: from outside, the public path; port-forward: by the API server; job: from inside the cluster."""


class PulseSettings(Group):
    """The pulse of B9: 5 → 50 → 5 users, in stages of 30, 10, 60 and 30 seconds."""

    low_users: int = Field(default=5, ge=1, le=10_000)
    """Users before and after."""
    high_users: int = Field(default=50, ge=1, le=10_000)
    """Users at the height."""
    stage_seconds: tuple[Seconds, Seconds, Seconds, Seconds] = (30, 10, 60, 30)
    """Steady at the low number, ramp, steady at the high number, low again."""
    prompt_words: int = Field(default=60, ge=1, le=1_000_000)
    """Length of a prompt."""
    max_tokens: int = Field(default=32, ge=1, le=1_000_000)
    """Length of an answer, at most."""


class DrillSettings(Group):
    """The load under which drills run: few users with long streams."""

    users: int = Field(default=3, ge=1, le=10_000)
    """Users at the same time."""
    max_tokens: int = Field(default=64, ge=1, le=1_000_000)
    """Length of a stream, at most."""
    settle_seconds: Seconds = 5
    """Load before the disturbance, and after its end."""
    slow_seconds: Seconds = 15
    """A first token later than this counts as slow."""


class SmokeSettings(Group):
    """The safe probes that decide whether a deployment counts as done."""

    gate: bool = True
    """Whether a deployment is proven before it counts as done."""
    nonce: str = ""
    """Any new text makes the gate run again on an unchanged stack."""
    via: Way = "endpoint"
    """The way of requests; endpoint: the public path, port-forward: by the API server, job: from a pod inside."""
    endpoint: Literal["local"] | AnyHttpUrl | None = None
    """Public base URL of the gateway, for via endpoint; local: the local cluster's load balancer (`MOONSTACK_PORT` moves it)."""
    deadline_seconds: int = Field(default=60, ge=5, le=3600)
    """For the safe probes, all together."""
    long_deadline_seconds: int = Field(default=900, ge=5, le=7200)
    """For a run that also has paid or disruptive probes."""
    prefix_tokens: int = Field(default=1000, ge=64, le=10_000_000)
    """Length of the shared prefix in the cache probe."""
    warm_over_cold_ttft: float = Field(default=0.25, gt=0, lt=1)
    """TTFT with the shared prefix over TTFT without it, at most."""
    min_hit_share: float = Field(default=0.5, gt=0, le=1)
    """Share of a prompt's tokens that a second replica must find in the store, at least."""
    golden_logprob_gap: float = Field(default=0.05, ge=0, le=100)
    """Two answers may part where the log probabilities of the two best tokens are at most this far apart."""
    compare_prompt_gap: float = Field(default=0.1, gt=0, le=100)
    """By what share the channel may count other prompt tokens than the cluster for the same request; another tokenizer shows."""
    pulse: PulseSettings = PulseSettings()
    """The load of `python -m smoke pulse`."""
    drills: DrillSettings = DrillSettings()
    """The load of `python -m smoke drill`."""

    @property
    def base_url(self) -> str | None:
        """Where the gateway is reached from outside, without a slash at the end; None where nothing says it."""
        if self.endpoint == "local":
            return f"https://127.0.0.1:{local_port()}"
        return None if self.endpoint is None else str(self.endpoint).rstrip("/")
