"""The scalers of the gateway (A3) and of the engines (B1), and the prediction (A13)."""

from datetime import time
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AnyHttpUrl, Field, StringConstraints, field_validator, model_validator

from rules.metrics import Engine
from settings.base import Group, ModelName
from settings.plain_input import LINES

Role = Literal["prefill", "decode", "serve"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _ordered(low: int, high: int) -> None:
    if low > high:
        raise ValueError(f"minReplicas {low} is above maxReplicas {high}; raise the maximum or lower the minimum")


class GatewayScaling(Group):
    """A3's `[autoscaler]`: on requests per second per pod over qpsPerPod."""

    enabled: bool = True
    """Whether the gateway is scaled; else it has `gateway.replicas`."""
    min_replicas: int = Field(default=8, ge=1, le=10_000)
    """Fewest pods."""
    max_replicas: int = Field(default=256, ge=1, le=10_000)
    """Most pods; times `channel.ratelimit.qpsPerPod` within `channel.quotaQps`."""
    scale_out_threshold: float = Field(default=0.75, gt=0, le=1)
    """Share of `channel.ratelimit.qpsPerPod` above which pods are added."""
    scale_in_threshold: float = Field(default=0.35, gt=0, le=1)
    """Share below which pods are taken away."""
    predict_window_minutes: int = Field(default=5, ge=1, le=60)
    """How far ahead gateways and engines are scaled out (A13)."""

    @model_validator(mode="after")
    def _range(self) -> "GatewayScaling":
        _ordered(self.min_replicas, self.max_replicas)
        if self.scale_in_threshold >= self.scale_out_threshold:
            raise ValueError(
                f"scaleInThreshold {self.scale_in_threshold} must be below scaleOutThreshold "
                f"{self.scale_out_threshold}; lower it, else pods flap"
            )
        return self


class RoleRange(Group):
    """Replica bounds of one role, where they differ from the common ones."""

    min_replicas: int | None = Field(default=None, ge=1, le=10_000)
    """Fewest pods of the role."""
    max_replicas: int | None = Field(default=None, ge=1, le=10_000)
    """Most pods of the role."""


class Trigger(Group):
    """A trigger of one's own, for implementation keda: a PromQL query and its target per pod."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
    """Its name."""
    query: Annotated[str, LINES] = Field(min_length=1)
    """PromQL."""
    target: float = Field(gt=0, le=10**12)
    """Value per pod."""


class PredictionSettings(Group):
    """The predictive floor: it adds to the reactive scaler and never replaces it (B7)."""

    enabled: bool = True
    """Whether floors follow a forecast."""
    method: Literal["lastValue", "sameTimeOfDay"] = "sameTimeOfDay"
    """Chosen by `python -m capacity score` on a recorded load; lastValue keeps no history."""
    margin_percent: float = Field(default=20, ge=0, le=200)
    """Added to the forecast."""
    history_days: int = Field(default=4, ge=1, le=14)
    """Days of load that the forecast looks back on."""
    quantile: float = Field(default=0.8, gt=0, lt=1)
    """Quantile of those days that counts."""
    requests_per_pod: float | None = Field(default=None, gt=0, le=65_536)
    """Requests in flight that one pod serves within the TTFT target; 75 % of maxNumSeqs when not given."""
    step_up_pods: int = Field(default=20, ge=1, le=10_000)
    """Most pods by which a floor rises in a minute: a floor escapes the HPA's own policy."""


class ScheduledWindow(Group):
    """A floor for known hours; the window starts on the named days and may pass midnight."""

    role: Role
    """The role that gets the floor."""
    model: ModelName | None = None
    """All models with that role when not given."""
    days: tuple[Weekday, ...] = WEEKDAYS
    """Days on which the window starts."""
    start: time
    """Local time, such as "09:00"."""
    end: time
    """Local time; earlier than start means the next day."""
    timezone: str = "UTC"
    """Name of the time zone."""
    min_replicas: int = Field(ge=1, le=10_000)
    """The floor."""

    @field_validator("timezone")
    @classmethod
    def _known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            raise ValueError("is no time zone; use a name such as UTC or Asia/Shanghai") from None
        return value

    @model_validator(mode="after")
    def _not_empty(self) -> "ScheduledWindow":
        if self.start == self.end:
            raise ValueError("start and end are equal, so the window is empty; move one of them")
        return self


class EngineScaling(Group):
    """B1: HPA on Pods metrics, per role."""

    enabled: bool = True
    """Whether engines are scaled; else they have the replicas of their placements."""
    implementation: Literal["hpa", "keda", "kthena"] = "hpa"
    """Who scales models of backend native; keda needs its controller. Models of backend kthena are scaled by Kthena in any case."""
    metrics_source: Literal["builtin", "prometheus-adapter"] = "builtin"
    """Who serves custom.metrics.k8s.io: our controller, or a prometheus-adapter that is there already."""
    prometheus_url: AnyHttpUrl | None = None
    """For implementation keda."""
    engine: Engine = "vllm"
    """Whose metrics are read."""
    min_replicas: int = Field(default=2, ge=1, le=10_000)
    """Fewest pods of a role and pool."""
    max_replicas: int = Field(default=10, ge=1, le=10_000)
    """Most pods of a role and pool."""
    roles: dict[Role, RoleRange] = Field(default_factory=dict)
    """Other bounds for single roles."""
    queue_depth: float = Field(default=10, gt=0, le=1_000_000)
    """Target: requests that wait, per pod."""
    ttft_seconds: float = Field(default=2, gt=0, le=86_400)
    """Target: 95th percentile of the time to the first token."""
    ttft_window_seconds: int = Field(default=60, ge=5, le=600)
    """Span over which that percentile is taken."""
    kv_utilization_percent: float = Field(default=85, gt=0, le=100)
    """Target: KV cache in use."""
    running_requests: float | None = Field(default=None, gt=0, le=65_536)
    """Target of requests in a decode pod's batch; 75 % of maxNumSeqs when not given."""
    scale_up_window_seconds: int = Field(default=30, ge=0, le=3600)
    """How long a need must last."""
    scale_up_pods: int = Field(default=2, ge=1, le=10_000)
    """Pods added in a period, at most."""
    scale_up_period_seconds: int = Field(default=60, ge=1, le=1800)
    """The period."""
    scale_down_window_seconds: int = Field(default=300, ge=0, le=3600)
    """How long a need must be gone."""
    scale_down_pods: int = Field(default=1, ge=1, le=10_000)
    """Pods taken away in a period, at most."""
    scale_down_period_seconds: int = Field(default=120, ge=1, le=1800)
    """The period."""
    triggers: tuple[Trigger, ...] = ()
    """More triggers, for implementation keda."""
    decode_per_prefill: float | None = Field(default=None, gt=0, le=1000)
    """Fewest decode pods for each prefill pod, kept by floors."""
    prefill_per_decode: float | None = Field(default=None, gt=0, le=1000)
    """Fewest prefill pods for each decode pod, kept by floors."""
    prediction: PredictionSettings = PredictionSettings()
    """The predictive floor."""
    schedule: tuple[ScheduledWindow, ...] = ()
    """Floors for known hours."""

    @model_validator(mode="after")
    def _range(self) -> "EngineScaling":
        _ordered(self.min_replicas, self.max_replicas)
        for role in self.roles:
            _ordered(*self.bounds(role))
        return self

    def bounds(self, role: Role) -> tuple[int, int]:
        """Minimum and maximum replicas of a role."""
        own = self.roles.get(role, RoleRange())
        return own.min_replicas or self.min_replicas, own.max_replicas or self.max_replicas


class AutoscalingSettings(Group):
    """All scalers; each has its own range, never mixed up."""

    gateway: GatewayScaling = GatewayScaling()
    """Gateway pods."""
    engines: EngineScaling = EngineScaling()
    """Engines of each role."""
