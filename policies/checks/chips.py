"""Pods ask for chips of a kind, number and place that exist."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.templates import PodTemplate
from policies.unknown import is_unknown, text
from rules import labels
from rules.chips import CHIPS
from settings.node_pools import NodePoolSettings

RESOURCES: Final = frozenset(stack.resource for chip in CHIPS.values() for stack in chip.stacks if stack.resource)


def requests_equal_limits(one: Object, facts: Facts) -> Iterator[Finding]:
    """Extended resources can't be overcommitted: the API server refuses a request beside another limit, at pod creation."""
    for _, path, container in _with_chips(one):
        requests, limits = _part(container, "requests"), _part(container, "limits")
        for resource in sorted(RESOURCES & ({*requests} | {*limits})):
            wanted, limit = requests.get(resource), limits.get(resource)
            if is_unknown(wanted) or is_unknown(limit):
                yield Finding(one, f"{path}.resources", f"{resource} is unknown until up", undecided=True)
            elif limit is None or (wanted is not None and str(wanted) != str(limit)):
                yield Finding(one, f"{path}.resources", f"{resource}: requests and limits must be equal")


def startup_probe(one: Object, facts: Facts) -> Iterator[Finding]:
    """A container with chips has a startup probe: without one a liveness probe kills it while it loads its model (B4)."""
    for _, path, container in _with_chips(one):
        if not container.get("startupProbe"):
            yield Finding(
                one, f"{path}.startupProbe", "is missing; budget it for the time that the weights need to load"
            )


def placed_on_a_pool(one: Object, facts: Facts) -> Iterator[Finding]:
    """A pod with chips selects a declared pool and its architecture, tolerates its taints, and fits a node of it."""
    pods = {id(pod): (pod, _chips(one, pod)) for pod, _, _ in _with_chips(one)}
    for pod, chips in pods.values():
        selector = pod.spec.get("nodeSelector") or {}
        for label in (labels.NODE_POOL, labels.ARCH):
            if label not in selector:
                yield Finding(
                    one, f'{pod.path}.nodeSelector["{label}"]', "is missing; pods land on whatever has the resource"
                )
        if facts.settings is not None and labels.NODE_POOL in selector:
            yield from _on_pool(one, pod, chips, _pool(selector, facts.settings.node_pools))


def _on_pool(
    one: Object, pod: PodTemplate, chips: Mapping[str, int], pool: NodePoolSettings | None
) -> Iterator[Finding]:
    if pool is None:
        yield Finding(one, f"{pod.path}.nodeSelector", "selects no pool of moonstack:nodePools")
        return
    stack = CHIPS[pool.chip].stack(pool.driver_stack)
    expected = stack.resource if stack else None
    for resource, count in chips.items():
        if resource != expected:
            yield Finding(
                one, pod.path, f"asks for {resource}, and pool {pool.name} ({pool.driver_stack}) has {expected}"
            )
        elif count > pool.chips_per_node:
            limit = f"a node of pool {pool.name} has {pool.chips_per_node}"
            yield Finding(one, pod.path, f"asks for {count} × {resource}, and {limit}; a pod is never split over nodes")
    arch = text((pod.spec.get("nodeSelector") or {}).get(labels.ARCH))
    if arch and arch != pool.arch:
        yield Finding(
            one, f'{pod.path}.nodeSelector["{labels.ARCH}"]', f"is {arch}, and pool {pool.name} is {pool.arch}"
        )
    tolerated = {text(toleration.get("key")) for toleration in pod.spec.get("tolerations") or ()}
    for toleration in pool.tolerations:
        if toleration.key not in tolerated and "" not in tolerated:
            yield Finding(one, f"{pod.path}.tolerations", f"lacks {toleration.key}, a taint of pool {pool.name}")


def _pool(selector: Mapping[str, Any], pools: tuple[NodePoolSettings, ...]) -> NodePoolSettings | None:
    name, value = text(selector.get(labels.POOL)), text(selector.get(labels.NODE_POOL))
    return next((pool for pool in pools if (pool.name == name if name else pool.pool_label == value)), None)


def _with_chips(one: Object) -> Iterator[tuple[PodTemplate, str, Mapping[str, Any]]]:
    for pod in one.pods:
        for path, container in pod.containers():
            if RESOURCES & ({*_part(container, "requests")} | {*_part(container, "limits")}):
                yield pod, path, container


def _chips(one: Object, pod: PodTemplate) -> dict[str, int]:
    found: dict[str, int] = {}
    for other, _, container in _with_chips(one):
        if other is pod:
            for resource, count in (_part(container, "requests") | _part(container, "limits")).items():
                if resource in RESOURCES:
                    found[resource] = found.get(resource, 0) + int(text(count))
    return found


def _part(container: Mapping[str, Any], which: str) -> dict[str, Any]:
    return dict((container.get("resources") or {}).get(which) or {})


RULES: Final = (
    Rule(
        id="chips-equal",
        concern="placement",
        severity="high",
        description="Requests and limits of chips are equal.",
        each=requests_equal_limits,
        reads_pods=True,
    ),
    Rule(
        id="chips-startup-probe",
        concern="placement",
        severity="high",
        description="Every container with chips has a startup probe.",
        each=startup_probe,
        reads_pods=True,
    ),
    Rule(
        id="chips-on-a-pool",
        concern="placement",
        severity="high",
        description="A pod with chips selects a declared pool and its architecture, tolerates its taints, asks for its resource "
        "and fits a node of it.",
        each=placed_on_a_pool,
        reads_pods=True,
    ),
)
