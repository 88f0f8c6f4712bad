"""How weights reach a pod: a volume, the folder in it, and what fetches them first where they aren't on the node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class PodWeights:
    """A model's weights as an engine pod mounts them."""

    volume: Mapping[str, Any]
    """A pod volume's source, without its name."""
    revision: str
    """The revision that is really there."""
    sub_path: str | None = None
    """Folder within the volume."""
    init_containers: tuple[dict[str, Any], ...] = ()

    def sub_path_mount(self) -> dict[str, str]:
        """The mount's `subPath`, if there is one."""
        return {"subPath": self.sub_path} if self.sub_path else {}
