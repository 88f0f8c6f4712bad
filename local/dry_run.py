"""DRY_RUN=1: what would be done to this machine, and nothing of it."""

import os
from collections.abc import Sequence

from local import packages, prerequisites, tools
from local.cluster.layout import HOST_INTERFACE, NETWORK_NAMESPACE, layout
from local.progress import Progress

VARIABLE = "DRY_RUN"


def is_on() -> bool:
    """Whether the user only wants to know."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def say(progress: Progress, debian: Sequence[str], programs: Sequence[str]) -> None:
    """Check the machine, and list packages, builds and places. Raises LocalError as the real run would."""
    place = layout()
    prerequisites.check(place)
    missing = packages.missing(debian)
    builds = tools.to_build(programs)
    progress.say(f"Debian packages to install: {' '.join(missing) or 'none'}")
    progress.say(f"Tools to build: {', '.join(f'{one.module} {one.version}' for one in builds) or 'none'}")
    progress.say(f"To create: network namespace {NETWORK_NAMESPACE}, interface {HOST_INTERFACE} ({place.host})")
    progress.say(f"To listen: 127.0.0.1:{place.port}")
    progress.say(f"To keep there: {place.state} (state, removed by down), {tools.bin_dir().parents[1]} (cache)")
