"""What was released: one digest over every object of the stack."""

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from components.context import Context
from rules import digest


def release_digest(context: Context) -> pulumi.Output[str]:
    """32 hex digits that change with any input of any declared object, secrets included; safe to show.

    Keys have at least 128 bits of entropy, so a digest over them tells nothing.
    Only the Outputs inside are awaited: `Output.from_input` of the manifests makes an Output of every leaf, and the
    outstanding ones were a third of the program's time in a stack of 600 objects.
    """
    objects = list(context.ledger)
    inside = pulumi.Output.all(*_outputs(objects))
    return pulumi.Output.unsecret(
        inside.apply(lambda values: digest.short(_resolved(objects, iter(values)), digits=32))
    )


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
