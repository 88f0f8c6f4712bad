"""How many pods of a part may be taken away at once."""

from collections.abc import Mapping

from components.context import Context
from components.objects import Manifest


def disruption_budget(name: str, component: str, selector: Mapping[str, str], context: Context) -> Manifest:
    """One pod away at a time: a drain goes on, and where there are two or more, one stays."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": context.metadata(name, component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}},
    }
