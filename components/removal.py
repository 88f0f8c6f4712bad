"""How long Pulumi waits for a workload to be deleted: for as long as its pods may take to end, whoever declares it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi

from rules import timing

DEFAULT_GRACE_SECONDS: Final = 30
"""terminationGracePeriodSeconds of a pod that says none (Kubernetes)."""


def with_removal(
    manifest: Mapping[str, Any], timeouts: pulumi.CustomTimeouts | None = None
) -> pulumi.CustomTimeouts | None:
    """The timeouts of an object, with that of its deletion where it has pods and none is given; None where nothing is."""
    grace = longest_grace(manifest)
    if grace is None or (timeouts and timeouts.delete):
        return timeouts
    created, updated = (timeouts.create, timeouts.update) if timeouts else (None, None)
    return pulumi.CustomTimeouts(create=created, update=updated, delete=f"{timing.removal_seconds(grace)}s")


def longest_grace(manifest: Mapping[str, Any]) -> int | None:
    """Seconds that the slowest of an object's pods may take to end, None for an object without pods."""
    return max(_graces(manifest), default=None)


def _graces(value: Any) -> Iterator[int]:
    """Wherever the object's kind keeps its pod specs: Deployments have one, a ModelServing two a role."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _graces(each)
    elif isinstance(value, Mapping):
        if "containers" in value:
            yield int(value.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS))
        for each in value.values():
            yield from _graces(each)
