"""Who counts a ModelServing's replicas once Kthena scales it: never the stack.

Its `spec.template.roles` is an atomic list (volcano-sh/kthena CRDs, no list map keys). Kthena's autoscaler writes replicas in it and
owns all of it from then on: a server-side apply conflicts, and a forced one would put back the replicas it holds. So an apply that
changes anything carries the replicas that run now, and one that changes nothing is left out, which takes a digest of the rest.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rules import digest

DIGEST: Final = "moonstack.dev/serving-digest"
"""Annotation: everything of the object but its roles' replicas, as last applied."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """A ModelServing on the cluster."""

    digest: str | None
    replicas: Mapping[str, int]
    """Role → engines in each group."""


def running(serving: Mapping[str, Any]) -> Running:
    """What matters of a live ModelServing."""
    annotations = serving["metadata"].get("annotations") or {}
    roles = serving["spec"]["template"]["roles"]
    return Running(digest=annotations.get(DIGEST), replicas={role["name"]: role.get("replicas", 1) for role in roles})


def with_digest(manifest: Mapping[str, Any], *more: str | None) -> dict[str, Any]:
    """The manifest with the digest of itself without replicas, and of `more` that is added to it later."""
    counted = copy.deepcopy(dict(manifest))
    for role in counted["spec"]["template"]["roles"]:
        del role["replicas"]
    annotations = dict(manifest["metadata"].get("annotations") or {}) | {DIGEST: digest.short([counted, *more])}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def changed(manifest: Mapping[str, Any], now: Running | None) -> bool:
    """Whether anything but replicas differs from what runs; True when nothing is known of it."""
    return now is None or manifest["metadata"]["annotations"][DIGEST] != now.digest


def with_replicas(manifest: Mapping[str, Any], now: Running, bounds: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """The manifest with the replicas that run, within each role's bounds; a role that is new keeps its own."""
    applied = copy.deepcopy(dict(manifest))
    for role in applied["spec"]["template"]["roles"]:
        low, high = bounds[role["name"]]
        role["replicas"] = min(max(now.replicas.get(role["name"], role["replicas"]), low), high)
    return applied
