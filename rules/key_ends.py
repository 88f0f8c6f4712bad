"""When the channel's keys end, written beside their values: whoever takes one away first sees that its end is still that one."""

from collections.abc import Iterable
from datetime import UTC, datetime

from rules.digest import canonical


def key_ends(keys: Iterable[tuple[str, datetime | None]]) -> str:
    """The text of the annotation `rules.labels.KEY_ENDS`, from ids and ends (UTC in it); empty where no key ends."""
    ends = {key_id: end.astimezone(UTC).isoformat() for key_id, end in keys if end}
    return canonical(ends) if ends else ""
