"""Texts that are written in pieces or in escapes: as a shell, a program or a page would put them together."""

import re
from collections.abc import Iterator
from typing import Final

_ESCAPE: Final = re.compile(
    r"\\x(?P<x>[0-9a-fA-F]{2})|\\u(?P<u>[0-9a-fA-F]{4})|\\0?(?P<octal>[0-3][0-7]{2})"
    r"|&#(?P<number>[0-9]{2,7});|&#[xX](?P<entity>[0-9a-fA-F]{2,6});"
)
_MARKS: Final = ("\\x", "\\u", "\\0", "\\1", "&#")
_QUOTED_PRINTABLE: Final = re.compile(r"(?:=[0-9A-F]{2}){4,}")
_SEAM: Final = re.compile(r"""\\\r?\n[ \t]*|(?<=[\w-])(["'])(?:\s*\+\s*)?\1(?=[\w-])""")
"""A line that goes on, quotes that end and begin at once, and a sum of texts."""
_HIGHEST: Final = 0x10FFFF


def unescaped(text: str) -> Iterator[str]:
    """The text with its escapes read: \\xNN, \\uNNNN, octal, &#N;, and quoted-printable."""
    if any(mark in text for mark in _MARKS) and (plain := _ESCAPE.sub(_letter, text)) != text:
        yield plain
    if _QUOTED_PRINTABLE.search(text):
        yield _QUOTED_PRINTABLE.sub(lambda run: bytes.fromhex(run[0].replace("=", "")).decode("latin-1"), text)


def joined(text: str) -> Iterator[str]:
    """The text without the seams between its pieces."""
    if (whole := _SEAM.sub("", text)) != text:
        yield whole


def _letter(escape: re.Match[str]) -> str:
    digits = escape["x"] or escape["u"] or escape["entity"]
    number = int(digits, 16) if digits else int(escape["octal"], 8) if escape["octal"] else int(escape["number"])
    return chr(number) if number <= _HIGHEST else escape[0]
