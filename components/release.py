"""What was released: one digest over every object of the stack."""

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from components.context import Context
from rules import digest
from rules.serving_replicas import DIGEST


def release_digest(context: Context) -> pulumi.Output[str]:
    """32 hex digits that change with any input of any declared object, secrets included; safe to show.

    Keys have at least 128 bits of entropy, so a digest over them tells nothing.
    Only the Outputs inside are awaited: `Output.from_input` of the manifests makes an Output of every leaf, and the
    outstanding ones were a third of the program's time in a stack of 600 objects.
    """
    objects = [_released(manifest) for manifest in context.ledger]
    inside = pulumi.Output.all(*_outputs(objects))
    return pulumi.Output.unsecret(
        inside.apply(lambda values: digest.short(_resolved(objects, iter(values)), digits=32))
    )


def _released(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replicas that Kthena counts are no release: such an object has a digest of all else in its metadata."""
    scaled = DIGEST in (manifest["metadata"].get("annotations") or {})
    return {"kind": manifest["kind"], "metadata": manifest["metadata"]} if scaled else manifest


def _outputs(value: Any) -> Iterator[pulumi.Output[Any]]:
    """The Outputs in a manifest, in the order in which `_resolved` puts their values back."""
    if isinstance(value, pulumi.Output):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _outputs(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _outputs(item)


def _resolved(value: Any, values: Iterator[Any]) -> Any:
    if isinstance(value, pulumi.Output):
        return next(values)
    if isinstance(value, Mapping):
        return {key: _resolved(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_resolved(item, values) for item in value]
    return value
