"""One key, one environment, one purpose: the lock names every key by fingerprint, so that no stack needs to know another's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rules.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedKey:
    """One version of a key as the lock knows it; nothing of it is secret (rules/fingerprint.py)."""

    id: str
    environment: str
    purpose: str
    fingerprint: str
    expires: datetime | None = None


def shared_keys(keys: Sequence[LockedKey]) -> list[Problem]:
    """The same key in two environments (A7), for two purposes, or under two ids."""
    first: dict[str, LockedKey] = {}
    problems = []
    for index, key in enumerate(keys):
        other = first.setdefault(key.fingerprint, key)
        if other is not key and _differs(key, other):
            problems.append(_shared(f"keys[{index}]", key, other))
    return problems


def foreign_keys(keys: Iterable[LockedKey], lock: Sequence[LockedKey]) -> list[Problem]:
    """Keys of a stack that the lock knows from another environment, or for another purpose or id."""
    return [
        _shared(f"moonstack:keys.{key.id}", key, other)
        for key in keys
        for other in lock
        if other.fingerprint == key.fingerprint and _differs(key, other)
    ]


def unlocked_keys(keys: Iterable[LockedKey], lock: Sequence[LockedKey], fix: str) -> list[Problem]:
    """Keys of a stack that the lock doesn't know: nobody could tell whether another stack uses them too."""
    known = {key.fingerprint for key in lock}
    return [
        Problem(f"moonstack:keys.{key.id}", f"fingerprint {key.fingerprint[:8]}", "is not in keys.lock.json", fix)
        for key in keys
        if key.fingerprint not in known
    ]


def _differs(one: LockedKey, other: LockedKey) -> bool:
    return (one.id, one.environment, one.purpose) != (other.id, other.environment, other.purpose)


def _shared(path: str, key: LockedKey, other: LockedKey) -> Problem:
    return Problem(
        path,
        f"fingerprint {key.fingerprint[:8]}",
        f"is key {other.id} of {other.environment} for {other.purpose}, and here {key.id} of {key.environment} for {key.purpose}",
        "get a key of its own for each environment and purpose, and revoke the shared one",
    )
