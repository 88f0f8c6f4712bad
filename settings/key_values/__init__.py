"""Where key values come from: one reader a source, each giving the versions of every key.

Values never enter `Settings`; a reader returns them to the one caller that asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

from rules import key_value
from rules.problem import Problem
from settings.errors import SettingsError
from settings.keys import KeySettings

Stage = Literal["current", "next", "previous"]
"""current: what everybody uses; next: accepted already, not yet used; previous: still accepted after a rotation."""
STAGES: tuple[Stage, ...] = get_args(Stage)

Versions = Mapping[Stage, str]


class KeyReader(Protocol):
    """One source of key values."""

    def read(self, ids: Sequence[str]) -> Mapping[str, Versions]:
        """The versions of each key by id; a key without a value is left out. Raises SettingsError if unreachable."""
        ...

    def where(self, key_id: str) -> str:
        """Where the current value of a key belongs, for messages."""
        ...


def checked(reader: KeyReader, keys: Sequence[KeySettings]) -> Mapping[str, Versions]:
    """Every declared key's versions, each a usable key. Raises SettingsError that names all missing and malformed ones, never a value."""
    found = reader.read([key.id for key in keys])
    problems = [problem for key in keys for problem in _problems(reader, key, found.get(key.id, {}))]
    if problems:
        raise SettingsError(problems, "the keys")
    return found


def _problems(reader: KeyReader, key: KeySettings, versions: Versions) -> list[Problem]:
    path = f"moonstack:keys.{key.id}"
    if "current" not in versions:
        return [Problem(path, None, f"has no value in {reader.where(key.id)}", "put the bare key there")]
    faults: list[tuple[Any, str | None]] = [(stage, key_value.fault(value)) for stage, value in versions.items()]
    return [
        Problem(path, stage, f"the value in {reader.where(key.id)} {fault}", "replace it with the bare key")
        for stage, fault in faults
        if fault
    ]
