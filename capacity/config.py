"""What the controller in the cluster is told: derived from the stack's settings, mounted as one JSON file."""

from datetime import time
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from capacity.pods import COMPONENT, GATEWAY
from rules import labels, names, ports
from rules.metrics import Engine
from rules.scaling import requests_per_pod
from settings.autoscaling import PredictionSettings, Role, Weekday
from settings.capacity_plan import RolePlan, role_plans
from settings.settings import Settings


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Window(_Frozen):
    """A scheduled floor; `end` before `start` passes midnight."""

    days: tuple[Weekday, ...]
    start: time
    end: time
    timezone: str
    replicas: int


class Target(_Frozen):
    """One role of a model on one pool, or the gateway: Deployment and HPA have this name."""

    name: str
    model: str
    role: Role
    selector: dict[str, str]
    low: int
    high: int
    scaled: bool
    requests_per_pod: float
    """Requests in flight; of the gateway, requests a second."""
    warm: str | None = None
    """The warm Deployment beside it."""
    warm_selector: dict[str, str] = {}
    pool: str = ""
    """The node pool whose chips it takes, and how many a pod."""
    chips: int = 0
    windows: tuple[Window, ...] = ()
    per_other: float | None = None
    """Fewest pods of this role for each pod of the model's other role."""


class ControllerConfig(_Frozen):
    """Everything the controller needs to know; times in seconds."""

    namespace: str
    targets: tuple[Target, ...]
    engine: Engine = "vllm"
    engine_port: int = ports.ENGINE
    scrape_interval: float = 1.0
    scrape_timeout: float = 2.0
    ttft_window: int = 60
    queue_depth: float = 10
    ttft: float = 2
    kv_utilization_percent: float = 85
    prediction: PredictionSettings = PredictionSettings()
    predict_window_minutes: int = 5
    down_pods: int = 1
    down_period: int = 120
    warm_low: int = 1
    warm_high: int = 4
    warm_chips: int | None = None
    """Most chips of one node pool that warm pods of all targets hold together."""
    review_activations: int = 3
    calm_seconds: int = 60

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """The configuration of a stack's controller."""
        engines, warm = settings.autoscaling.engines, settings.warm_pool
        return cls(
            namespace=settings.cluster.namespace,
            targets=(
                *(_target(settings, plan) for plan in role_plans(settings) if plan.model.backend == "native"),
                *_gateway(settings),
            ),
            engine=engines.engine,
            ttft_window=engines.ttft_window_seconds,
            queue_depth=engines.queue_depth,
            ttft=engines.ttft_seconds,
            kv_utilization_percent=engines.kv_utilization_percent,
            prediction=engines.prediction,
            predict_window_minutes=settings.autoscaling.gateway.predict_window_minutes,
            down_pods=engines.scale_down_pods,
            down_period=engines.scale_down_period_seconds,
            warm_low=warm.min_replicas,
            warm_high=warm.max_replicas,
            warm_chips=warm.chips_per_pool,
            review_activations=warm.review_activations,
            calm_seconds=warm.calm_seconds,
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """The configuration from its file. Raises OSError and pydantic's ValidationError."""
        return cls.model_validate_json(path.read_text())

    def target(self, name: str) -> Target:
        """The target of that name. Raises KeyError."""
        return next(target for target in self.targets if target.name == name)


def _target(settings: Settings, plan: RolePlan) -> Target:
    engines = settings.autoscaling.engines
    model, slug, pool = plan.model.name, names.slug(plan.model.name), plan.placement.pool
    ratio = {"decode": engines.decode_per_prefill, "prefill": engines.prefill_per_decode}.get(plan.role)
    return Target(
        name=names.engine(model, plan.role, pool),
        model=model,
        role=plan.role,
        selector=labels.engine_selector(slug, plan.role, pool),
        low=plan.least,
        high=plan.most,
        scaled=plan.scaled and engines.implementation == "hpa",
        requests_per_pod=requests_per_pod(engines.prediction.requests_per_pod, plan.model.engine.max_num_seqs),
        warm=names.warm(model, plan.role, pool) if plan.warm else None,
        warm_selector=labels.warm_selector(slug, plan.role, pool) if plan.warm else {},
        pool=pool,
        chips=plan.placement.chips,
        windows=tuple(
            Window(days=w.days, start=w.start, end=w.end, timezone=w.timezone, replicas=w.min_replicas)
            for w in engines.schedule
            if w.role == plan.role and w.model in (None, model)
        ),
        per_other=ratio,
    )


def _gateway(settings: Settings) -> list[Target]:
    """The gateway is scaled out ahead as well, on requests a second: A3's thresholds, and its own range."""
    scaler = settings.autoscaling.gateway
    if not scaler.enabled:
        return []
    return [
        Target(
            name=names.GATEWAY,
            model="",
            role="serve",
            selector={COMPONENT: GATEWAY},
            low=scaler.min_replicas,
            high=scaler.max_replicas,
            scaled=True,
            requests_per_pod=scaler.scale_out_threshold * settings.channel.ratelimit.qps_per_pod,
        )
    ]
