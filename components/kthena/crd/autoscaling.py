"""AutoscalingPolicy of 0.4 with its Binding, and of 1.0, where targets moved into the policy and bindings are gone."""

from typing import Literal

from pydantic import Field

from components.kthena.crd.base import Dns1035, Duration, KubernetesObject, Part, Percent, Quantity
from rules import kthena


class StablePolicy(Part):
    """A step of scaling: at most `instances` or `percent` in a period, whichever is more for `Or`."""

    instances: int = Field(ge=0)
    percent: Percent = 0
    period: Duration
    select_policy: Literal["Or", "And"] = "Or"
    stabilization_window: Duration


class ScaleUp(Part):
    """Scaling up, without a panic mode."""

    stable_policy: StablePolicy


class Behavior(Part):
    """Written out: left out, the webhook of 0.4 fills other numbers than the CRD."""

    scale_up: ScaleUp
    scale_down: StablePolicy


class NamedTarget(Part):
    """The workload that scales."""

    api_version: Literal["workload.serving.volcano.sh/v1alpha1"] = "workload.serving.volcano.sh/v1alpha1"
    kind: str = "ModelServing"
    name: Dns1035


class MetricEndpoint(Part):
    """Where the engines' metrics are; the CRD's default 8100 is a sidecar that Moonstack doesn't use."""

    uri: Literal["/metrics"] = "/metrics"
    port: int = Field(ge=1, le=65535)


class Metric04(Part):
    """A metric of 0.4."""

    metric_name: str = Field(min_length=1)
    target_value: Quantity


class PolicySpec04(Part):
    """A policy of 0.4: metrics and behaviour, no target."""

    metrics: tuple[Metric04, ...] = Field(min_length=1)
    tolerance_percent: int = Field(default=10, ge=0, le=100)
    behavior: Behavior


class AutoscalingPolicy04(KubernetesObject):
    """AutoscalingPolicy of 0.4."""

    api_version: str = kthena.WORKLOAD
    kind: str = "AutoscalingPolicy"
    spec: PolicySpec04


class SubTarget(Part):
    """The role that scales; the CRD's field name is plural though it holds one."""

    kind: Literal["Role"] = "Role"
    name: str


class BindingTarget(Part):
    """Workload, role and metrics of a binding."""

    target_ref: NamedTarget
    sub_targets: SubTarget
    metric_endpoint: MetricEndpoint


class HomogeneousTarget(Part):
    """One target and its range."""

    target: BindingTarget
    min_replicas: int = Field(ge=1, le=1_000_000)
    max_replicas: int = Field(ge=1, le=1_000_000)


class PolicyRef(Part):
    """The policy, which must exist already."""

    name: Dns1035


class BindingSpec(Part):
    """A policy bound to a target."""

    policy_ref: PolicyRef
    homogeneous_target: HomogeneousTarget


class AutoscalingPolicyBinding(KubernetesObject):
    """Only in 0.4."""

    api_version: str = kthena.WORKLOAD
    kind: str = "AutoscalingPolicyBinding"
    spec: BindingSpec


class Metric10(Part):
    """A metric of 1.0."""

    name: str = Field(min_length=1)
    target_value: Quantity


class PodSource(MetricEndpoint):
    """A metric read from the pods."""

    name: str


class MetricSource(Part):
    """Where a metric comes from."""

    pod: PodSource


class RoleTarget(Part):
    """One role's range, metrics and their sources."""

    min_replicas: int = Field(ge=1, le=1_000_000)
    max_replicas: int = Field(ge=1, le=1_000_000)
    metrics: tuple[Metric10, ...] = Field(min_length=1)
    metric_sources: dict[str, MetricSource]


class RatioConstraint(Part):
    """Replicas of one role over those of the other."""

    numerator_role: str
    denominator_role: str
    min_ratio: Quantity
    max_ratio: Quantity


class DisaggregatedTarget(Part):
    """Both roles of a group scale, each on its own metrics."""

    target_ref: NamedTarget
    roles: dict[str, RoleTarget] = Field(min_length=1, max_length=2)
    ratio_constraint: RatioConstraint | None = None


class PolicySpec10(Part):
    """A policy of 1.0: behaviour and target."""

    tolerance_percent: int = Field(default=10, ge=0, le=100)
    behavior: Behavior
    disaggregated_target: DisaggregatedTarget


class AutoscalingPolicy10(KubernetesObject):
    """AutoscalingPolicy of 1.0."""

    api_version: str = kthena.WORKLOAD
    kind: str = "AutoscalingPolicy"
    spec: PolicySpec10
