"""One audit: every place is looked at; one that can't be is said so, and never counts as clean."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from policies.audit.search import Canaries, search


class Unreadable(Exception):
    """A place could not be looked at, or not whole; the message says why."""


@dataclass(frozen=True)
class Place:
    """Where keys might be: a name, and what reads it as (where, content) pairs. The reader raises Unreadable."""

    name: str
    read: Callable[[], Iterable[tuple[str, Any]]]
    find: Callable[[Any, Canaries], Iterable[tuple[str, str]]] = search
    """Path and kind of every sighting in a content."""


@dataclass(frozen=True)
class Looked:
    """What became of one place."""

    place: str
    items: int
    unread: str | None = None


@dataclass(frozen=True)
class Sighting:
    """A key where none may be; never its text."""

    place: str
    where: str
    path: str
    kind: str


@dataclass(frozen=True)
class Audit:
    """Where the audit looked and what it found."""

    looked: tuple[Looked, ...]
    sightings: tuple[Sighting, ...]

    @property
    def exit_code(self) -> int:
        """1: keys were found; 2: none was, and some place could not be looked at; 0: clean."""
        return 1 if self.sightings else 2 if any(one.unread for one in self.looked) else 0

    def document(self) -> dict[str, Any]:
        """For machines."""
        verdict = ("clean", "keys found", "incomplete")[self.exit_code]
        return {
            "schema": 1,
            "verdict": verdict,
            "looked": [{"place": one.place, "items": one.items, "unread": one.unread} for one in self.looked],
            "findings": [vars(one) for one in self.sightings],
        }


def audit(places: Sequence[Place], canaries: Canaries) -> Audit:
    """Look at every place, in order."""
    looked: list[Looked] = []
    sightings: list[Sighting] = []
    for place in places:
        items, unread = 0, None
        try:
            for where, content in place.read():
                items += 1
                sightings += [Sighting(place.name, where, path, kind) for path, kind in place.find(content, canaries)]
        except Unreadable as error:
            unread = str(error)
        looked.append(Looked(place.name, items, unread))
    return Audit(tuple(looked), tuple(sightings))
