"""What no key takes, whatever it is for: true as a number, text that can't be read, credentials inside a URL."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

LINES: Final = "text of several lines"
"""Marks a text that may have line breaks and tabs, in its `Annotated`."""
_UNREADABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that show nothing, or change how the text beside them is shown: control, format, surrogate, line breaks."""
_USER_INFO: Final = re.compile(r"://[^/\s]*@")


@dataclass(frozen=True, slots=True)
class Taken:
    """What a field takes, as far as these checks ask: found once a field, as each of its values is checked."""

    number: bool
    """A number, and neither true nor false."""
    whole: bool
    """A plain value or a list of them: groups below check their own fields."""
    lines: bool

    @classmethod
    def by(cls, field: FieldInfo) -> Self:
        """What this field takes."""
        kinds = set(_kinds(field.annotation))
        groups = any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)
        return cls(bool not in kinds and bool(kinds & {int, float}), not groups, LINES in field.metadata)


def check(field: Taken, value: Any) -> None:
    """Raises ValueError (`what is wrong; the fix`) for a value that no key of the kind takes; never names a secret."""
    for one in _scalars(value) if field.whole else [value]:
        if field.number and isinstance(one, bool):
            raise ValueError("true and false are no numbers; write digits")
        if isinstance(one, str):
            _check_text(one, field.lines)


def _check_text(text: str, lines: bool) -> None:
    allowed = "\n\t" if lines else ""
    unsure = [] if text.isprintable() else text  # isprintable is far quicker, and refuses more: other blanks, for one
    bad = next((each for each in unsure if unicodedata.category(each) in _UNREADABLE and each not in allowed), None)
    if bad is not None:
        raise ValueError(f"holds the character U+{ord(bad):04X}, which can't be read; remove it")
    if text and not text.strip():
        raise ValueError("is blank; give a value, or remove the key")
    if _USER_INFO.search(text):
        raise ValueError("holds a user or a password; write the URL without them, and give credentials as keys")


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from (key, *_scalars(one))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _scalars(one)
    else:
        yield value


def _kinds(annotation: Any) -> Iterator[Any]:
    """The plain types that an annotation is made of."""
    if not (inner := get_args(annotation)):
        yield annotation
    for one in inner:
        yield from _kinds(one)
