"""What was released: one digest over every object of the stack."""

import pulumi

from components.context import Context
from rules import digest


def release_digest(context: Context) -> pulumi.Output[str]:
    """32 hex digits that change with any input of any declared object, secrets included; safe to show.

    Keys have at least 128 bits of entropy, so a digest over them tells nothing.
    """
    objects = pulumi.Output.from_input(list(context.ledger))
    return pulumi.Output.unsecret(objects.apply(lambda resolved: digest.short(resolved, digits=32)))
