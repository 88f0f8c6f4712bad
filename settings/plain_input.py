"""What no key takes, whatever it is for: true as a number, text that can't be read, credentials inside a URL."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

LINES: Final = "text of several lines"
"""Marks a text that may have line breaks and tabs, in its `Annotated`."""
_UNREADABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that show nothing, or change how the text beside them is shown: control, format, surrogate, line breaks."""
_USER_INFO: Final = re.compile(r"://[^/\s]*@")


def check(field: FieldInfo, value: Any) -> None:
    """Raises ValueError (`what is wrong; the fix`) for a value that no key of the kind takes; never names a secret."""
    kinds = set(_kinds(field.annotation))
    whole = not any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)
    for one in _scalars(value) if whole else [value]:
        if isinstance(one, bool) and bool not in kinds and kinds & {int, float}:
            raise ValueError("true and false are no numbers; write digits")
        if isinstance(one, str):
            _check_text(one, LINES in field.metadata)


def _check_text(text: str, lines: bool) -> None:
    allowed = "\n\t" if lines else ""
    bad = next((each for each in text if unicodedata.category(each) in _UNREADABLE and each not in allowed), None)
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
