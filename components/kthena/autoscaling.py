"""A model's AutoscalingPolicy, from the same declaration as the HPA: one a role with a Binding in 0.4, one for both roles in 1.0."""

from typing import Final

from components.context import Context
from components.kthena.crd.autoscaling import (
    AutoscalingPolicy04,
    AutoscalingPolicy10,
    AutoscalingPolicyBinding,
    Behavior,
    BindingSpec,
    BindingTarget,
    DisaggregatedTarget,
    HomogeneousTarget,
    Metric04,
    Metric10,
    MetricEndpoint,
    MetricSource,
    NamedTarget,
    PodSource,
    PolicyRef,
    PolicySpec04,
    PolicySpec10,
    RatioConstraint,
    RoleTarget,
    ScaleUp,
    StablePolicy,
    SubTarget,
)
from components.kthena.crd.base import KubernetesObject
from rules import kthena, names, ports
from settings.autoscaling import EngineScaling, Role
from settings.models import ModelSettings

WAITING: Final = "vllm:num_requests_waiting"
KV_USAGE: Final = "vllm:kv_cache_usage_perc"
UNBOUNDED_RATIO: Final = "1000"


def autoscaling_objects(
    model: ModelSettings, scaling: EngineScaling, release: kthena.Release, context: Context
) -> list[KubernetesObject]:
    """Policies and bindings, in the order in which they must be created (0.4 refuses a binding without its policy)."""
    roles: list[Role] = [role for role in ("prefill", "decode", "serve") if role in model.roles()]
    if release == "1.0":
        return [_policy10(model, roles, scaling, context)]
    policies = [_policy04(model, role, scaling, context) for role in roles]
    return [*policies, *(_binding(model, role, scaling, context) for role in roles)]


def targets(role: Role, scaling: EngineScaling) -> dict[str, str]:
    """Metric → target a pod: prefill is short of compute and shows a queue, decode is short of KV space (a ratio in 0 to 1)."""
    found = {WAITING: _quantity(scaling.queue_depth)}
    if role != names.PREFILL:
        found[KV_USAGE] = _quantity(scaling.kv_utilization_percent / 100)
    return found


def _policy04(model: ModelSettings, role: Role, scaling: EngineScaling, context: Context) -> AutoscalingPolicy04:
    metrics = tuple(Metric04(metric_name=name, target_value=value) for name, value in targets(role, scaling).items())
    return AutoscalingPolicy04(
        metadata=context.metadata(kthena.scaler(model.name, role), "autoscaling"),
        spec=PolicySpec04(metrics=metrics, behavior=_behavior(scaling)),
    )


def _binding(model: ModelSettings, role: Role, scaling: EngineScaling, context: Context) -> AutoscalingPolicyBinding:
    low, high = scaling.bounds(role)
    target = BindingTarget(
        target_ref=_target_ref(model),
        sub_targets=SubTarget(name=role),
        metric_endpoint=MetricEndpoint(port=ports.ENGINE),
    )
    return AutoscalingPolicyBinding(
        metadata=context.metadata(kthena.scaler(model.name, role), "autoscaling"),
        spec=BindingSpec(
            policy_ref=PolicyRef(name=kthena.scaler(model.name, role)),
            homogeneous_target=HomogeneousTarget(target=target, min_replicas=low, max_replicas=high),
        ),
    )


def _policy10(model: ModelSettings, roles: list[Role], scaling: EngineScaling, context: Context) -> AutoscalingPolicy10:
    target = DisaggregatedTarget(
        target_ref=_target_ref(model),
        roles={role: _role_target(role, scaling) for role in roles},
        ratio_constraint=_ratio(scaling) if len(roles) == 2 else None,
    )
    return AutoscalingPolicy10(
        metadata=context.metadata(kthena.scaler(model.name), "autoscaling"),
        spec=PolicySpec10(behavior=_behavior(scaling), disaggregated_target=target),
    )


def _role_target(role: Role, scaling: EngineScaling) -> RoleTarget:
    low, high = scaling.bounds(role)
    wanted = targets(role, scaling)
    return RoleTarget(
        min_replicas=low,
        max_replicas=high,
        metrics=tuple(Metric10(name=name, target_value=value) for name, value in wanted.items()),
        metric_sources={name: MetricSource(pod=PodSource(name=name, port=ports.ENGINE)) for name in wanted},
    )


def _ratio(scaling: EngineScaling) -> RatioConstraint | None:
    """Prefill over decode: `decodePerPrefill` bounds it from above, `prefillPerDecode` from below."""
    if scaling.decode_per_prefill is None and scaling.prefill_per_decode is None:
        return None
    return RatioConstraint(
        numerator_role=names.PREFILL,
        denominator_role=names.DECODE,
        min_ratio=_quantity(scaling.prefill_per_decode or 0),
        max_ratio=_quantity(1 / scaling.decode_per_prefill) if scaling.decode_per_prefill else UNBOUNDED_RATIO,
    )


def _target_ref(model: ModelSettings) -> NamedTarget:
    return NamedTarget(name=names.model_serving(model.name))


def _behavior(scaling: EngineScaling) -> Behavior:
    return Behavior(
        scale_up=ScaleUp(
            stable_policy=StablePolicy(
                instances=scaling.scale_up_pods,
                period=f"{scaling.scale_up_period_seconds}s",
                stabilization_window=f"{scaling.scale_up_window_seconds}s",
            )
        ),
        scale_down=StablePolicy(
            instances=scaling.scale_down_pods,
            period=f"{scaling.scale_down_period_seconds}s",
            stabilization_window=f"{scaling.scale_down_window_seconds}s",
        ),
    )


def _quantity(value: float) -> str:
    """A Kubernetes quantity in thousandths, exact and without an exponent."""
    return f"{round(value * 1000)}m"
