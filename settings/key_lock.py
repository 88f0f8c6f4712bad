"""The committed file keys.lock.json: which keys exist, by fingerprint."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import StringConstraints, ValidationError

from rules.key_lock import LockedKey, foreign_keys, shared_keys, unlocked_keys
from rules.problem import Problem
from settings.base import DnsLabel, Group
from settings.cluster import Environment
from settings.errors import SettingsError, from_pydantic
from settings.keys import Moment, Purpose
from settings.settings import Settings

FILE: Final = "keys.lock.json"
PATH: Final = Path(__file__).resolve().parent.parent / FILE


class Entry(Group):
    """One line of the lock."""

    id: DnsLabel
    environment: Environment
    purpose: Purpose
    fingerprint: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    expires: Moment | None = None


class Lock(Group):
    """The file's content."""

    schema_version: Literal[1] = 1
    keys: tuple[Entry, ...] = ()


def load(path: Path = PATH) -> tuple[LockedKey, ...]:
    """The locked keys. Raises SettingsError for a file that is missing, malformed, or locks one key twice."""
    try:
        lock = Lock.model_validate_json(path.read_text())
    except OSError:
        raise SettingsError([Problem(FILE, None, "cannot be read", "restore it from the repository")], FILE) from None
    except ValidationError as error:
        raise SettingsError(from_pydantic(error, FILE, Lock), FILE) from None
    keys = tuple(LockedKey(**entry.model_dump()) for entry in lock.keys)
    if problems := shared_keys(keys):
        raise SettingsError(problems, FILE)
    return keys


def store(keys: Sequence[LockedKey], path: Path = PATH) -> None:
    """Write the lock in a fixed order, so that a diff shows what changed. Raises SettingsError if two entries share a key."""
    if problems := shared_keys(keys):
        raise SettingsError(problems, FILE)
    ordered = sorted(keys, key=lambda key: (key.environment, key.id, key.fingerprint))
    document = {"schemaVersion": 1, "keys": [_document(key) for key in ordered]}
    scratch = path.with_name(f"{path.name}.part")
    scratch.write_text(json.dumps(document, indent=2) + "\n")
    scratch.replace(path)


def problems(settings: Settings, fingerprints: Sequence[tuple[str, str]], lock: Sequence[LockedKey]) -> list[Problem]:
    """What the lock says against a stack's keys, given as (id, fingerprint).

    Keys that a machine generates for itself (source local) are in no lock, and must still be nobody else's.
    """
    keys = locked(settings, fingerprints)
    found = foreign_keys(keys, lock)
    if found or settings.keys.source == "local":
        return found
    return unlocked_keys(
        keys, lock, f"add it: python -m rotation lock --stack {settings.environment}, and commit {FILE}"
    )


def locked(settings: Settings, fingerprints: Sequence[tuple[str, str]]) -> list[LockedKey]:
    """A stack's keys as the lock would name them."""
    declared = {key.id: key for key in settings.keys.keys}
    return [
        LockedKey(
            id=key_id,
            environment=settings.environment,
            purpose=declared[key_id].purpose,
            fingerprint=fingerprint,
            expires=declared[key_id].expires,
        )
        for key_id, fingerprint in fingerprints
    ]


def _document(key: LockedKey) -> dict[str, Any]:
    entry = {name: getattr(key, name) for name in ("id", "environment", "purpose", "fingerprint")}
    return entry | ({"expires": key.expires.isoformat()} if key.expires else {})
