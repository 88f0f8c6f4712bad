"""Scalers that can't scale, and scaling that changes nothing."""

from collections.abc import Iterator
from typing import Final

from rules import labels, names
from rules.metrics.served import EXTERNAL_GROUP, GROUP
from smoke.cluster import ready
from smoke.doctor.diagnosis import Diagnosis, Hit
from smoke.doctor.facts import Facts, condition, label, name_of
from smoke.routers import differences

APIS: Final = {"pods": GROUP, "external": EXTERNAL_GROUP}
"""A metric's kind in an HPA → the API that it is read from."""


def _wanted(facts: Facts) -> list[str]:
    """The metrics APIs that the stack's scalers read; KEDA's HPAs read another than ours."""
    kinds = {kind for hpa in facts.hpas for metric in hpa["spec"].get("metrics", ()) for kind in metric}
    return [group for kind, group in APIS.items() if kind in kinds]


def _available(facts: Facts, group: str) -> bool:
    services = [one for one in facts.api_services if one["spec"].get("group") == group]
    return any((state := condition(one, "Available")) and state["status"] == "True" for one in services)


def _inactive(facts: Facts, *reasons: str) -> Iterator[tuple[str, str]]:
    for hpa in facts.hpas:
        active = condition(hpa, "ScalingActive")
        if active and active["status"] == "False" and active.get("reason", "").startswith(reasons):
            yield name_of(hpa), active.get("message", active.get("reason", ""))


def no_metrics_api(facts: Facts) -> Iterator[Hit]:
    """Needs a scaler that wants the API."""
    for group in _wanted(facts):
        if _available(facts, group):
            continue
        states = [condition(one, "Available") for one in facts.api_services if one["spec"].get("group") == group]
        seen = "; ".join(state.get("message", "") for state in states if state) or f"no APIService for {group}"
        yield Hit(f"apiservice/{group}", seen)


def metric_not_served(facts: Facts) -> Iterator[Hit]:
    """The API is there, the value is not: HPA shows <unknown>."""
    if all(_available(facts, group) for group in _wanted(facts)):
        yield from (Hit(name, seen) for name, seen in _inactive(facts, "FailedGet"))


def two_scalers(facts: Facts) -> Iterator[Hit]:
    """Both stop (H13)."""
    yield from (Hit(name, seen) for name, seen in _inactive(facts, "AmbiguousSelector"))


def scaled_to_zero(facts: Facts) -> Iterator[Hit]:
    """The HPA is off and does not come back by itself (H12)."""
    yield from (Hit(name, seen) for name, seen in _inactive(facts, "ScalingDisabled"))


def at_maximum(facts: Facts) -> Iterator[Hit]:
    """The scaler wants more than it may have."""
    for hpa in facts.hpas:
        limited = condition(hpa, "ScalingLimited")
        if limited and limited["status"] == "True" and limited.get("reason") == "TooManyReplicas":
            yield Hit(name_of(hpa), f"maxReplicas is {hpa['spec']['maxReplicas']}")


def ready_but_not_routed(facts: Facts) -> Iterator[Hit]:
    """New pods without the routing label take no traffic: scaled out, TTFT unchanged."""
    for pod in facts.pods:
        serving = label(pod, labels.ROLE) and label(pod, "moonstack.dev/warm-pool") == "false"
        if serving and ready(pod) and label(pod, labels.ROUTED) != "true":
            yield Hit(name_of(pod), f"{labels.ROUTED}={label(pod, labels.ROUTED)}, warm={label(pod, 'warm')}")


def router_does_not_know(facts: Facts) -> Iterator[Hit]:
    """A router's list of workers differs from the Ready, routed pods of its model."""
    for router, text in differences(facts.settings.models, facts.pods, facts.workers).items():
        yield Hit(f"pod/{router}", text)


CATALOGUE: Final = (
    Diagnosis(
        id="metrics-api-missing", title="HPA shows <unknown>: there is no metrics API", severity="error",
        cause="the API that scalers read is not there or does not answer",
        fix="pulumi up (the stack with clusterScope own declares it); then check the capacity controller's pods, or KEDA's metrics "
        "server; while it is down, every namespace deletion in the cluster hangs",
        look=f"kubectl get apiservice | grep metrics.k8s.io; kubectl -n NS get pods -l app.kubernetes.io/name={names.CAPACITY}",
        source="requirement B10; kubernetes/kubernetes HPA and API aggregation", detect=no_metrics_api,
    ),
    Diagnosis(
        id="metric-not-served", title="HPA shows <unknown>: the metric has no value", severity="error",
        cause="the metrics API answers, but without this metric: engines are not scraped, or none is Ready",
        fix="read the capacity controller's log for refused or rejected scrapes; check that NetworkPolicies let it reach port 8000",
        look="kubectl -n NS describe hpa", source="requirement B10", detect=metric_not_served,
    ),
    Diagnosis(
        id="two-scalers", title="Two scalers on one Deployment", severity="error",
        cause="two HPAs (a KEDA ScaledObject makes one too) select the same pods, so both have stopped",
        fix="remove one of them", look="kubectl -n NS get hpa,scaledobject", source="kedacore/keda FAQ", detect=two_scalers,
    ),
    Diagnosis(
        id="scaler-off", title="The scaler is off because replicas is 0", severity="error",
        cause="somebody set spec.replicas to 0, which switches the HPA off for good",
        fix="kubectl -n NS scale deployment NAME --replicas=1; the HPA takes over again", look="kubectl -n NS describe hpa",
        source="Kubernetes HPA documentation, implicit maintenance-mode deactivation", detect=scaled_to_zero,
    ),
    Diagnosis(
        id="scaler-at-maximum", title="The scaler is at its maximum", severity="warning",
        cause="the load asks for more pods than maxReplicas allows",
        fix="raise autoscaling.engines.maxReplicas (and the pool), or lower the load; the gateway falls back to the channel meanwhile",
        look="kubectl -n NS get hpa", source="requirement B9", detect=at_maximum,
    ),
    Diagnosis(
        id="ready-not-routed", title="Scaled, but TTFT unchanged: Ready pods get no traffic", severity="error",
        cause="the pod is Ready and carries no routing label, so no router picks it",
        fix=f"kubectl -n NS label pod NAME {labels.ROUTED}=true --overwrite; a rollout restores it for good",
        look=f"kubectl -n NS get pods -L {labels.ROUTED},warm", source="requirement B10", detect=ready_but_not_routed,
    ),
    Diagnosis(
        id="router-stale", title="A router does not know a Ready pod", severity="error",
        cause="the router's discovery is behind: it may not watch pods, or lost its watch",
        fix="kubectl -n NS rollout restart deployment -l app.kubernetes.io/component=router; check its Role (list and watch on pods)",
        look="kubectl -n NS logs -l app.kubernetes.io/component=router --tail=50",
        source="vllm-project/router#279; requirement B10", detect=router_does_not_know,
    ),
)  # fmt: skip
