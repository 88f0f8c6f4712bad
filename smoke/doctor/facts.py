"""One look at the live stack: objects, counters and answers, gathered once and judged by pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prometheus_client.samples import Sample

from settings.settings import Settings
from smoke.engines import Counters
from smoke.errors import SmokeError
from smoke.routers import Workers

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """How the gateway answered a list of models and one chat with the smoke key; an error where it did not."""

    models: frozenset[str] = frozenset()
    status: int | None = None
    error: SmokeError | None = None
    parsed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The stack at one time. Lists are empty where nothing is there; `blind` names what could not be read."""

    settings: Settings
    now: datetime
    pods: tuple[Object, ...] = ()
    deployments: tuple[Object, ...] = ()
    hpas: tuple[Object, ...] = ()
    kthena: tuple[Object, ...] = ()
    """ModelServings and their scalers."""
    events: tuple[Object, ...] = ()
    nodes: tuple[Object, ...] = ()
    api_services: tuple[Object, ...] = ()
    root_ca: Object | None = None
    counters: Counters = field(default_factory=dict)
    """Engine pod → counters."""
    workers: Workers = field(default_factory=dict)
    gateway: tuple[Sample, ...] = ()
    """Samples of all gateway pods."""
    store: Mapping[str, float] = field(default_factory=dict)
    """The Mooncake master's counters."""
    door: Door | None = None
    blind: tuple[str, ...] = ()


def name_of(thing: Object) -> str:
    """kind/name, as kubectl takes it; kinds come from where the object was listed."""
    return f"{thing.get('kind', 'Pod').lower()}/{thing['metadata']['name']}"


def label(thing: Object, key: str) -> str | None:
    """A label's value."""
    return thing["metadata"].get("labels", {}).get(key)


def condition(thing: Object, kind: str) -> Object | None:
    """A status condition by type."""
    return next((c for c in thing.get("status", {}).get("conditions", ()) if c["type"] == kind), None)


def containers(pod: Object) -> list[Object]:
    """Status of every container, the init containers first."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def waiting(pod: Object) -> list[tuple[str, str]]:
    """Reason and message of each container that waits."""
    states = [one.get("state", {}).get("waiting") for one in containers(pod)]
    return [(state.get("reason", ""), state.get("message", "")) for state in states if state]
