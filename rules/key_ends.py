"""Ends of keys: what to do about one; and when the channel's keys end, written beside their values.

Whoever takes a value away first sees that its end is still that one.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from rules.digest import canonical


def key_ends(keys: Iterable[tuple[str, datetime | None]]) -> str:
    """The text of the annotation `rules.labels.KEY_ENDS`, from ids and ends (UTC in it); empty where no key ends."""
    ends = {key_id: end.astimezone(UTC).isoformat() for key_id, end in keys if end}
    return canonical(ends) if ends else ""


def way_out(stack: str, key_id: str, *, outbound: bool) -> str:
    """What to do about a key that has ended: the settings of its next version, and the command that brings it."""
    return (
        f"write its next end at expires in Pulumi.{stack}.yaml, then {rotate_command(stack, key_id, outbound=outbound)}"
    )


def rotate_command(stack: str, key_id: str, *, outbound: bool) -> str:
    """The command that gives a key its next version; an outbound key's is read from stdin."""
    return f"make rotate STACK={stack} ID={key_id}" + (" < FILE, with the channel's new key in it" if outbound else "")
