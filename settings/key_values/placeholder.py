"""Stand-ins for keys where no key is needed: previews, renderings and rehearsals without credentials."""

from collections.abc import Mapping, Sequence

from settings.key_values import Versions

TEXT = "placeholder"


class PlaceholderKeys:
    """The same stand-in for a key in every run; no gateway that serves anybody may ever get one."""

    def read(self, ids: Sequence[str]) -> Mapping[str, Versions]:
        """`placeholder-<id>` for every key."""
        return {key_id: {"current": f"{TEXT}-{key_id}"} for key_id in ids}

    def where(self, key_id: str) -> str:
        """Nowhere, in words."""
        return f"{TEXT}s (key {key_id} was never read)"
