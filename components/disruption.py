"""How many pods of a part may be taken away at once."""

from collections.abc import Mapping

from components.context import Context
from components.objects import Manifest


def disruption_budget(name: str, component: str, selector: Mapping[str, str], context: Context) -> Manifest:
    """One pod away at a time: a drain goes on, and where there are two or more, one stays."""
    return _budget(name, component, selector, {"maxUnavailable": 1}, context)


def groups_budget(name: str, selector: Mapping[str, str], groups: int, group_pods: int, context: Context) -> Manifest:
    """One of a ModelServing's groups away at a time: with the first of its pods, Kthena takes the others.

    A number of pods, as Kubernetes allows nothing else for pods of a controller that it doesn't know.
    """
    return _budget(name, "engine", selector, {"minAvailable": (groups - 1) * group_pods}, context)


def _budget(
    name: str, component: str, selector: Mapping[str, str], limit: Mapping[str, int], context: Context
) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": context.metadata(name, component),
        "spec": {**limit, "selector": {"matchLabels": dict(selector)}},
    }
