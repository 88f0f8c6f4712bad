"""The scalers of the gateway (A3) and of the engines (B1), and the prediction (A13)."""

from datetime import time
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AnyHttpUrl, Field, StringConstraints, field_validator, model_validator

from rules.metrics import Engine
from settings.base import Group, ModelName

Role = Literal["prefill", "decode", "serve"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _ordered(low: int, high: int) -> None:
    if low > high:
        raise ValueError(f"minReplicas {low} is above maxReplicas {high}; raise the maximum or lower the minimum")


class GatewayScaling(Group):
    """A3's `[autoscaler]`: on requests per second per pod over qpsPerPod."""

    enabled: bool = True
    min_replicas: int = Field(default=8, ge=1)
    max_replicas: int = Field(default=256, ge=1)
    scale_out_threshold: float = Field(default=0.75, gt=0, le=1)
    scale_in_threshold: float = Field(default=0.35, gt=0, le=1)
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

    min_replicas: int | None = Field(default=None, ge=1)
    max_replicas: int | None = Field(default=None, ge=1)


class Trigger(Group):
    """A trigger of one's own, for implementation keda: a PromQL query and its target per pod."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
    query: str = Field(min_length=1)
    target: float = Field(gt=0)


class PredictionSettings(Group):
    """The predictive floor: it adds to the reactive scaler and never replaces it (B7)."""

    enabled: bool = True
    method: Literal["lastValue", "sameTimeOfDay"] = "sameTimeOfDay"
    """Chosen by `python -m capacity score` on a recorded load; lastValue keeps no history."""
    margin_percent: float = Field(default=20, ge=0, le=200)
    history_days: int = Field(default=4, ge=1, le=14)
    quantile: float = Field(default=0.8, gt=0, lt=1)
    requests_per_pod: float | None = Field(default=None, gt=0)
    """Requests in flight that one pod serves within the TTFT target; 75 % of maxNumSeqs when not given."""
    step_up_pods: int = Field(default=20, ge=1)
    """Most pods by which a floor rises in a minute: a floor escapes the HPA's own policy."""


class ScheduledWindow(Group):
    """A floor for known hours; the window starts on the named days and may pass midnight."""

    role: Role
    model: ModelName | None = None
    """All models with that role when not given."""
    days: tuple[Weekday, ...] = WEEKDAYS
    start: time
    end: time
    timezone: str = "UTC"
    min_replicas: int = Field(ge=1)

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
    implementation: Literal["hpa", "keda", "kthena"] = "hpa"
    """Who scales models of backend native; keda needs its controller. Models of backend kthena are scaled by Kthena in any case."""
    metrics_source: Literal["builtin", "prometheus-adapter"] = "builtin"
    """Who serves custom.metrics.k8s.io: our controller, or a prometheus-adapter that is there already."""
    prometheus_url: AnyHttpUrl | None = None
    """For implementation keda."""
    engine: Engine = "vllm"
    min_replicas: int = Field(default=2, ge=1)
    max_replicas: int = Field(default=10, ge=1)
    roles: dict[Role, RoleRange] = Field(default_factory=dict)
    queue_depth: float = Field(default=10, gt=0)
    ttft_seconds: float = Field(default=2, gt=0)
    ttft_window_seconds: int = Field(default=60, ge=5, le=600)
    kv_utilization_percent: float = Field(default=85, gt=0, le=100)
    running_requests: float | None = Field(default=None, gt=0)
    """Target of requests in a decode pod's batch; 75 % of maxNumSeqs when not given."""
    scale_up_window_seconds: int = Field(default=30, ge=0, le=3600)
    scale_up_pods: int = Field(default=2, ge=1)
    scale_up_period_seconds: int = Field(default=60, ge=1, le=1800)
    scale_down_window_seconds: int = Field(default=300, ge=0, le=3600)
    scale_down_pods: int = Field(default=1, ge=1)
    scale_down_period_seconds: int = Field(default=120, ge=1, le=1800)
    triggers: tuple[Trigger, ...] = ()
    decode_per_prefill: float | None = Field(default=None, gt=0)
    """Fewest decode pods for each prefill pod, kept by floors."""
    prefill_per_decode: float | None = Field(default=None, gt=0)
    prediction: PredictionSettings = PredictionSettings()
    schedule: tuple[ScheduledWindow, ...] = ()

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
    engines: EngineScaling = EngineScaling()
