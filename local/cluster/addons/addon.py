"""What an addon is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.cluster.api import Api
from local.cluster.layout import Layout
from local.cluster.processes import Service


@dataclass(frozen=True)
class Addon:
    """A part of the cluster with one process: `tool` is its binary and the process's name; `clean` undoes what it set up."""

    name: str
    tool: str
    objects: Callable[[], list[dict[str, Any]]]
    service: Callable[[Layout], Service]
    clean: Callable[[Layout, Api], None]
    packages: tuple[str, ...] = ()
