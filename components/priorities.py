"""Priority classes of engines: which model's pods the scheduler places first, and whose room they may take."""

from dataclasses import dataclass
from typing import Final

import pulumi

from components.context import Context
from components.objects import Manifest, declare
from rules import labels, names

VALUES: Final = {"low": 1_000, "normal": 10_000, "high": 100_000}
"""Far below system-cluster-critical (2,000,000,000) and above pods without a class (0)."""


@dataclass(frozen=True, kw_only=True)
class PrioritiesResources:
    """The classes by level."""

    classes: dict[str, pulumi.CustomResource]


class Priorities(pulumi.ComponentResource):
    """The stack's three classes."""

    resources: PrioritiesResources

    def __init__(self, name: str, context: Context, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("moonstack:cluster:Priorities", name, {"values": VALUES}, opts)
        classes = {level: declare(priority_class(level, context), self, context) for level in VALUES}
        self.resources = PrioritiesResources(classes=classes)
        self.register_outputs({"classes": [each.id for each in classes.values()]})


def priority_class(level: str, context: Context) -> Manifest:
    """One class."""
    name = names.priority(level, context.namespace)
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": labels.recommended(name, "priority", context.stack)},
        "value": VALUES[level],
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": f"Moonstack engines of priority {level}",
    }
