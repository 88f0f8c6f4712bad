"""Scalers read metrics that exist, stay within quota and range, and don't flap."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.checks.replicas import target
from policies.objects import Object
from policies.rule import Facts, Finding, Rule, guarded
from policies.unknown import text
from rules import names, quantity
from rules.metrics.lint import ScalingRule, lint_rule
from rules.problem import Problem
from rules.quota import channel_quota

WINDOW_LIMIT: Final = 3600
"""Longest stabilization window that the API server takes (autoscaling/v2)."""
PERIOD_LIMIT: Final = 1800


def metrics_exist(one: Object, facts: Facts) -> Iterator[Finding]:
    """Every metric is in the catalogue, with a target that it can reach (rules/metrics)."""
    spec = one.body.get("spec") or {}
    if one.kind == "HorizontalPodAutoscaler":
        for index, metric in enumerate(spec.get("metrics") or ()):
            pods = metric.get("pods")
            if pods:
                path, goal = f"spec.metrics[{index}].pods", text(pods["target"].get("averageValue"))
                rule = ScalingRule(
                    path=path, query=text(pods["metric"]["name"]), target=float(quantity.parse(goal)), served=True
                )
                yield from (_finding(one, problem) for problem in lint_rule(rule))
    elif one.kind == "ScaledObject":
        for index, trigger in enumerate(spec.get("triggers") or ()):
            if text(trigger.get("type")) == "prometheus":
                given, path = trigger["metadata"], f"spec.triggers[{index}].metadata"
                rule = ScalingRule(path=path, query=text(given["query"]), target=float(text(given["threshold"])))
                yield from (_finding(one, problem) for problem in lint_rule(rule))


def ranges_are_sane(one: Object, facts: Facts) -> Iterator[Finding]:
    """Minimum within maximum; windows within the API's limits; scaling in is never quicker than scaling out (B1)."""
    if one.kind != "HorizontalPodAutoscaler":
        return
    spec = one.body["spec"]
    least, most = int(text(spec.get("minReplicas")) or 1), int(text(spec["maxReplicas"]))
    if least > most:
        yield Finding(one, "spec.minReplicas", f"is {least}, above maxReplicas {most}")
    behavior = spec.get("behavior") or {}
    windows = {side: _window(behavior, side) for side in ("scaleUp", "scaleDown")}
    for side, window in windows.items():
        if window > WINDOW_LIMIT:
            yield Finding(
                one, f"spec.behavior.{side}.stabilizationWindowSeconds", f"is {window}; at most {WINDOW_LIMIT}"
            )
        for index, policy in enumerate((behavior.get(side) or {}).get("policies") or ()):
            if int(text(policy.get("periodSeconds")) or 0) > PERIOD_LIMIT:
                yield Finding(one, f"spec.behavior.{side}.policies[{index}].periodSeconds", f"at most {PERIOD_LIMIT}")
    if windows["scaleDown"] < windows["scaleUp"]:
        yield Finding(
            one, "spec.behavior.scaleDown", "is quicker than scaleUp: replicas would flap; lengthen its window"
        )


def gateways_within_quota(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """As many gateways as a scaler may start stay within the channel's quota (A8)."""
    for one in objects:
        yield from guarded(_quota(one, facts), one)


def one_owner_of_an_api(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """Cluster-scoped objects belong to one stack: a second APIService of a group would take the first one's metrics away."""
    seen: dict[str, Object] = {}
    for one in objects:
        if one.kind == "APIService":
            if facts.settings and facts.settings.cluster_scope == "use":
                yield Finding(one, "metadata.name", "belongs to the stack with clusterScope own; remove it here")
            yield from guarded(_twice(one, seen), one)


def _twice(one: Object, seen: dict[str, Object]) -> Iterator[Finding]:
    name = text(one.metadata.get("name"))
    if seen.setdefault(name, one) is not one:
        yield Finding(one, "metadata.name", f"{name} is declared twice")


def _quota(one: Object, facts: Facts) -> Iterator[Finding]:
    found = target(one)
    if not facts.settings or not facts.settings.channel.enabled or not found or found[2] != names.GATEWAY:
        return
    spec = one.body["spec"]
    most = spec.get("maxReplicas", spec.get("maxReplicaCount"))
    limits = facts.settings.channel
    for problem in channel_quota(int(text(most)), limits.ratelimit.qps_per_pod, limits.quota_qps):
        path = "spec.maxReplicas" if "maxReplicas" in spec else "spec.maxReplicaCount"
        yield Finding(one, path, f"{problem.limit}; {problem.fix}")


def _window(behavior: Mapping[str, Any], side: str) -> int:
    default = 300 if side == "scaleDown" else 0
    given = (behavior.get(side) or {}).get("stabilizationWindowSeconds")
    return default if given is None else int(text(given))


def _finding(one: Object, problem: Problem) -> Finding:
    return Finding(one, problem.path, f"{problem.value}: {problem.limit}; {problem.fix}")


RULES: Final = (
    Rule(
        id="scaler-metrics",
        concern="scaling",
        severity="high",
        description="Scalers read metrics of the engine's catalogue, with targets that they can reach.",
        each=metrics_exist,
    ),
    Rule(
        id="scaler-ranges",
        concern="scaling",
        severity="medium",
        description="Ranges and windows of scalers are sane.",
        each=ranges_are_sane,
    ),
    Rule(
        id="gateway-quota",
        concern="scaling",
        severity="high",
        description="Gateway maximum × QPS per pod stays within the channel's quota.",
        all=gateways_within_quota,
    ),
    Rule(
        id="one-api-owner",
        concern="scaling",
        severity="high",
        description="One owner of an APIService.",
        all=one_owner_of_an_api,
    ),
)
