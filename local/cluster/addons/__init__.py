"""Parts of the cluster that are started only when asked for: enforced NetworkPolicies, simulated nodes."""

import time
from collections.abc import Iterable
from pathlib import Path

from local.cluster.addons.addon import Addon
from local.cluster.addons.kwok import KWOK
from local.cluster.addons.network_policies import NETWORK_POLICIES
from local.cluster.api import Api
from local.cluster.layout import Layout
from local.cluster.processes import Supervisor
from local.errors import LocalError

_SECONDS_TO_FAIL = 1.5  # wrong flags and missing kernel features end these programs well within a second

ADDONS: dict[str, Addon] = {addon.name: addon for addon in (KWOK, NETWORK_POLICIES)}


def named(name: str) -> Addon:
    """The addon of that name; raises LocalError with the names there are."""
    if name not in ADDONS:
        raise LocalError(f"{name} is no addon; there are: {', '.join(ADDONS)}")
    return ADDONS[name]


def packages(names: Iterable[str]) -> tuple[str, ...]:
    """Debian packages that the addons need."""
    return tuple(package for name in names for package in named(name).packages)


def tools(names: Iterable[str]) -> tuple[str, ...]:
    """Tools that the addons need built."""
    return tuple(named(name).tool for name in names)


def enabled(layout: Layout) -> list[str]:
    """The addons that were started in this cluster and not stopped since."""
    return [name for name in ADDONS if _record(layout, name).exists()]


def start(name: str, layout: Layout, supervisor: Supervisor, api: Api) -> None:
    """Start the addon, now and with every later `up` of this cluster; raises LocalError if it ends at once."""
    for document in named(name).objects():
        api.apply(document)
    if supervisor.ensure(named(name).service(layout)):
        time.sleep(_SECONDS_TO_FAIL)
    supervisor.require(named(name).tool)
    _record(layout, name).parent.mkdir(exist_ok=True)
    _record(layout, name).touch()


def stop(name: str, layout: Layout, supervisor: Supervisor, api: Api) -> None:
    """Stop the addon and undo what it set up."""
    supervisor.stop(named(name).tool)
    named(name).clean(layout, api)
    _record(layout, name).unlink(missing_ok=True)


def _record(layout: Layout, name: str) -> Path:
    return layout.state / "addons" / name
