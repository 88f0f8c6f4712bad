"""Keys in whatever a place holds: known values, and what looks like a key."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

from policies.checks.key_text import kinds
from policies.unwrap import texts


@dataclass(frozen=True)
class Canaries:
    """Values that must be nowhere: the stack's own keys, or planted ones. They are never shown."""

    values: tuple[str, ...] = field(default=(), repr=False)

    def within(self, text: str) -> bool:
        """Whether a text holds one of them, plain or as base64, hexadecimal or URL text."""
        return any(form in text for form in self._all_forms)

    @cached_property
    def _all_forms(self) -> tuple[str, ...]:
        return tuple(form for value in self.values for form in _forms(value))


def search(content: Any, canaries: Canaries) -> Iterator[tuple[str, str]]:
    """Path and kind of every sighting in a text or in nested data; one for the outermost text that shows it."""
    seen: list[str] = []
    for text in texts(content):
        if any(_covers(path, text.path) for path in seen):
            continue
        kind = "a known key" if canaries.within(text.text) else next(kinds(text), None)
        if kind:
            seen.append(text.path)
            yield text.place(), kind


def _covers(path: str, inner: str) -> bool:
    """Whether a text was already seen as part of the one around it."""
    return path in ("", inner) or inner.startswith((f"{path}.", f"{path}["))


def _forms(value: str) -> Sequence[str]:
    """Base64 at each of the three alignments in a longer text, without the characters that depend on its neighbours."""
    aligned = [base64.b64encode(b"\0" * shift + value.encode()).decode() for shift in range(3)]
    inner = [text[2 + shift : len(text) - 4].strip("=") for shift, text in enumerate(aligned)]
    return (value, quote(value, safe=""), value.encode().hex(), *(text for text in inner if len(text) >= 16))
