"""The engines of a model that changes as a whole (`rollout: blueGreen`): another pod template of any role is another set."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from components.pods.engine import engine_template
from components.pods.placement import spread_over_hosts
from rules import digest, labels, names

if TYPE_CHECKING:
    from components.serving_plan import EnginePlan


def with_sets(plans: "Sequence[EnginePlan]") -> "list[EnginePlan]":
    """The plans of a stack, in their order; those of a model that changes as a whole with the name and labels of their set."""
    whole = [plan for plan in plans if plan.model.rollout == "blueGreen"]
    sets = {plan.model.name: set_of([each for each in whole if each.model is plan.model]) for plan in whole}
    return [_in_set(plan, sets[plan.model.name]) if plan.model.name in sets else plan for plan in plans]


def set_of(plans: "Sequence[EnginePlan]") -> str:
    """Hex digits that change with every pod template of a model's roles and with nothing else: replicas leave a set as it is."""
    templates = {plan.name: engine_template(plan.pod, plan.labels, plan.store_digest) for plan in plans}
    return digest.short(templates, names.SET_DIGITS)


def _in_set(plan: "EnginePlan", set_id: str) -> "EnginePlan":
    selector = {**plan.selector, **labels.of_set(set_id)}
    name = names.engine(plan.model.name, plan.role, plan.pool.name, set_id)
    return replace(
        plan,
        name=name,
        selector=selector,
        labels={**plan.labels, "app.kubernetes.io/name": name, **labels.of_set(set_id)},
        pod=replace(plan.pod, topology_spread=spread_over_hosts(selector)),
        set_id=set_id,
    )
