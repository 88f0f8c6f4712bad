"""The scalers of the gateway (A3) and of the engines (B1), and the prediction (A13)."""

from pydantic import Field

from settings.base import Group


class GatewayScaling(Group):
    """A3's `[autoscaler]`: on requests per second per pod over qpsPerPod."""

    enabled: bool = True
    min_replicas: int = Field(default=8, ge=1)
    max_replicas: int = Field(default=256, ge=1)
    scale_out_threshold: float = Field(default=0.75, gt=0, le=1)
    scale_in_threshold: float = Field(default=0.35, gt=0, le=1)
    predict_window_minutes: int = Field(default=5, ge=1)


class EngineScaling(Group):
    """B1: HPA on Pods metrics, per role."""

    enabled: bool = True
    min_replicas: int = Field(default=2, ge=1)
    max_replicas: int = Field(default=10, ge=1)
    queue_depth: float = Field(default=10, gt=0)
    ttft_seconds: float = Field(default=2, gt=0)
    kv_utilization_percent: float = Field(default=85, gt=0, le=100)
    scale_up_window_seconds: int = Field(default=30, ge=0, le=3600)
    scale_up_pods: int = Field(default=2, ge=1)
    scale_up_period_seconds: int = Field(default=60, ge=1, le=1800)
    scale_down_window_seconds: int = Field(default=300, ge=0, le=3600)
    scale_down_pods: int = Field(default=1, ge=1)
    scale_down_period_seconds: int = Field(default=120, ge=1, le=1800)


class AutoscalingSettings(Group):
    """All scalers; each has its own range, never mixed up."""

    gateway: GatewayScaling = GatewayScaling()
    engines: EngineScaling = EngineScaling()
