"""Whoever owns a workload's replicas is the only one who writes them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule, guarded
from policies.unknown import text

SCALERS: Final = ("HorizontalPodAutoscaler", "ScaledObject")
WORKLOADS: Final = ("Deployment", "StatefulSet", "ModelServing")


def no_replicas_where_scaled(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """A workload that a scaler targets declares no spec.replicas: each `up` would undo the scaler's work (pulumi-kubernetes#2491)."""
    scaled: dict[tuple[str, str, str], str] = {}
    for scaler in objects:
        yield from guarded(_collect(scaler, scaled), scaler)
    kinds = {kind for _, kind, _ in scaled}
    for one in objects:
        if one.kind in kinds:
            yield from guarded(_owned(one, scaled), one)


def one_scaler_a_target(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """Two scalers on one workload fight over its replicas."""
    seen: dict[tuple[str, str, str], Object] = {}
    for scaler in objects:
        if scaler.kind in SCALERS:
            yield from guarded(_second(scaler, seen), scaler)


def target(scaler: Object) -> tuple[str, str, str] | None:
    """Namespace, kind and name of what a scaler scales, or None for another kind of object."""
    if scaler.kind not in SCALERS:
        return None
    reference: Any = scaler.body["spec"]["scaleTargetRef"]
    return scaler.namespace, text(reference.get("kind")) or "Deployment", text(reference["name"])


def _collect(scaler: Object, scaled: dict[tuple[str, str, str], str]) -> Iterator[Finding]:
    if (found := target(scaler)) is not None:
        scaled[found] = scaler.ref
    yield from ()


def _owned(one: Object, scaled: Mapping[tuple[str, str, str], str]) -> Iterator[Finding]:
    owner = scaled.get((one.namespace, one.kind, one.name))
    if owner and "replicas" in (one.body.get("spec") or {}) and "spec.replicas" not in one.ignored:
        yield Finding(
            one, "spec.replicas", f"is owned by {owner}; leave replicas out, or scale by hand and drop the scaler"
        )


def _second(scaler: Object, seen: dict[tuple[str, str, str], Object]) -> Iterator[Finding]:
    found = target(scaler)
    if found and (first := seen.setdefault(found, scaler)) is not scaler:
        yield Finding(
            scaler, "spec.scaleTargetRef", f"{found[1]} {found[2]} is scaled by {first.ref} too; keep one of them"
        )


RULES: Final = (
    Rule(
        id="scaled-without-replicas",
        concern="scaling",
        severity="high",
        description="No spec.replicas where a scaler owns them.",
        all=no_replicas_where_scaled,
    ),
    Rule(
        id="one-scaler-a-target",
        concern="scaling",
        severity="high",
        description="One scaler a workload.",
        all=one_scaler_a_target,
    ),
)
