"""Scalers, warm pool and the chips that they may come to hold."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules.metrics import served
from rules.metrics.lint import ScalingRule, lint_rule
from rules.placement import over_capacity
from rules.problem import Problem, duplicates
from settings.capacity_plan import most_demands, role_plans

if TYPE_CHECKING:
    from settings.settings import Settings


def rules_can_work(settings: "Settings") -> list[Problem]:
    """Every scaling rule names a metric that exists, with labels, kind, unit and range that fit its target."""
    engines = settings.autoscaling.engines
    rules = [
        ScalingRule(
            path=f"autoscaling.engines.triggers[{index}]", query=trigger.query, target=trigger.target, served=False
        )
        for index, trigger in enumerate(engines.triggers)
    ]
    targets = {
        "queueDepth": (served.QUEUE_DEPTH, engines.queue_depth),
        "ttftSeconds": (served.TTFT, engines.ttft_seconds),
        "kvUtilizationPercent": (served.KV_UTILIZATION, engines.kv_utilization_percent),
    }
    rules += [
        ScalingRule(path=f"autoscaling.engines.{key}", query=metric, target=target, served=True)
        for key, (metric, target) in targets.items()
    ]
    return [problem for rule in rules for problem in lint_rule(rule)]


def the_implementation_is_complete(settings: "Settings") -> list[Problem]:
    """KEDA needs a Prometheus; Kthena's scaler scales Kthena's workloads; own triggers are KEDA's."""
    engines = settings.autoscaling.engines
    if not engines.enabled:
        return []
    path = "autoscaling.engines"
    problems = duplicates(f"{path}.triggers", [trigger.name for trigger in engines.triggers], "trigger")
    if engines.implementation == "keda" and engines.prometheus_url is None:
        problems.append(
            Problem(f"{path}.prometheusUrl", None, "implementation keda reads Prometheus", "give its address")
        )
    if engines.triggers and engines.implementation != "keda":
        problems.append(
            Problem(
                f"{path}.triggers",
                engines.implementation,
                "only implementation keda takes triggers of one's own",
                "use keda, or remove them",
            )
        )
    backends = {model.backend for model in settings.models}
    if engines.implementation == "kthena" and backends != {"kthena"}:
        problems.append(
            Problem(
                f"{path}.implementation",
                "kthena",
                "scales models with backend kthena only",
                "use hpa for native models",
            )
        )
    return problems


def one_stack_serves_the_metrics(settings: "Settings") -> list[Problem]:
    """custom.metrics.k8s.io has one backend a cluster, and ours knows its own namespace only."""
    scaling = settings.autoscaling
    reads = scaling.gateway.enabled or (scaling.engines.enabled and scaling.engines.implementation == "hpa")
    if settings.cluster_scope == "own" or not reads or scaling.engines.metrics_source != "builtin":
        return []
    return [
        Problem(
            "autoscaling.engines.metricsSource",
            "builtin",
            "the metrics API of this cluster belongs to the stack with clusterScope own and serves that stack only",
            "use prometheus-adapter here, or a cluster of its own",
        )
    ]


def ratios_can_both_hold(settings: "Settings") -> list[Problem]:
    """Two floors that each ask for more of the other role would drive both to their maximum."""
    engines = settings.autoscaling.engines
    product = (engines.decode_per_prefill or 0) * (engines.prefill_per_decode or 0)
    if product <= 1:
        return []
    return [
        Problem(
            "autoscaling.engines.prefillPerDecode",
            engines.prefill_per_decode,
            f"times decodePerPrefill {engines.decode_per_prefill:g} is {product:g}, above 1: each role would chase the other",
            "lower one of the two",
        )
    ]


def windows_are_possible(settings: "Settings") -> list[Problem]:
    """A scheduled floor names a model that exists and stays within the role's maximum."""
    engines = settings.autoscaling.engines
    known = {model.name: model for model in settings.models}
    problems = []
    for index, window in enumerate(engines.schedule):
        path = f"autoscaling.engines.schedule[{index}]"
        if window.model is not None and window.model not in known:
            names = ", ".join(known) or "none declared"
            problems.append(
                Problem(f"{path}.model", window.model, "is not a declared model", f"choose one of: {names}")
            )
        _, high = engines.bounds(window.role)
        if window.min_replicas > high:
            problems.append(
                Problem(
                    f"{path}.minReplicas",
                    window.min_replicas,
                    f"the role's maximum is {high}",
                    "lower it, or raise maxReplicas",
                )
            )
    return problems


def warm_pods_start_within_their_budget(settings: "Settings") -> list[Problem]:
    """The warm pods that a stack starts with hold no more chips of a node pool than all models may share there."""
    budget, problems = settings.warm_pool.chips_per_pool, []
    for pool in settings.node_pools if budget is not None else ():
        here = [plan for plan in role_plans(settings) if plan.warm and plan.placement.pool == pool.name]
        chips = sum(plan.warm * plan.placement.chips for plan in here)
        if budget is not None and chips > budget:
            parts = " + ".join(f"{plan.warm}×{plan.placement.chips} of {plan.model.name}" for plan in here)
            limit = f"the warm pods on pool {pool.name} start with {parts} = {chips} chips"
            fix = "raise it, or lower warmPool.replicas or warmPool.roles"
            problems.append(Problem("warmPool.chipsPerPool", budget, limit, fix))
    return problems


def the_most_fits(settings: "Settings") -> list[Problem]:
    """Chips of a pool cover maximum replicas, warm pods and the surge of a rollout (else it ends in Pending pods)."""
    if not settings.autoscaling.engines.enabled and not settings.warm_pool.enabled:
        return []
    demands = most_demands(settings)
    return [
        problem
        for pool in settings.node_pools
        for problem in over_capacity(demands, pool.name, len(pool.nodes) or pool.count, pool.chips_per_node)
    ]


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    rules_can_work,
    the_implementation_is_complete,
    one_stack_serves_the_metrics,
    ratios_can_both_hold,
    windows_are_possible,
    warm_pods_start_within_their_budget,
    the_most_fits,
)
