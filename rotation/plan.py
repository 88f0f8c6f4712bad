"""What to do next, told from what is there: so a rotation that was killed anywhere goes on where it was."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Literal

from settings.key_values import Stage

Action = Literal["stage", "deploy", "prove", "promote", "drop", "wait", "done"]


@dataclass(frozen=True, kw_only=True)
class World:
    """What is known of one key: the store's versions and the cluster's, both by fingerprint."""

    store: Mapping[Stage, str]
    cluster: Set[str]
    kept: Set[str] = field(default_factory=frozenset)
    """Versions that have a Secret of their own in the cluster."""
    proven: Set[str] = field(default_factory=frozenset)
    """Versions that every gateway (or the channel, for an outbound key's next) was seen to accept, in this run."""
    outbound: bool = False
    overlap_over: bool = False
    """Whether the previous version has been accepted for long enough, or is to go at once."""
    begun: bool = False
    """Whether this run did something, or may not begin anything new."""


def next_action(world: World) -> Action:
    """The one next step. An inbound key's versions are all in the cluster; an outbound key has only its current one there.

    A version that the store dropped has not left before its Secret has.
    """
    store = world.store
    due = {store["current"]} if world.outbound else set(store.values())
    deployed = world.cluster == due and world.kept <= set(store.values())
    if "next" in store:
        if not deployed:
            return "deploy"
        return "promote" if store["next"] in world.proven else "prove"
    if "previous" in store:
        if not deployed:
            return "deploy"
        if store["current"] not in world.proven:
            return "prove"
        return "drop" if world.outbound or world.overlap_over else "wait"
    if not deployed:
        return "deploy"
    if not world.begun:
        return "stage"
    return "done" if store["current"] in world.proven else "prove"
