"""The series of one metric in a page of Prometheus text: an engine's page has hundreds of lines, of which thirty matter."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

_PAIR: Final = r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*'
_PAIRS: Final = re.compile(_PAIR)
_LABELS: Final = re.compile(rf"(?:{_PAIR}(?:,{_PAIR})*,?)?\s*", re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)")
_KNOWN: Final = 8192
"""Label texts that are remembered: the engines of a model write the same thirty, scrape after scrape."""


class Unreadable(Exception):
    """A line of the metric is no series."""


def series_of(page: str, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
    """Labels and value of each series of that very name, in the order of the page. Raises Unreadable.

    Only the metric's own lines are looked at: the rest of the page is skipped by a search for the name.
    """
    size, at = len(name), page.find(name)
    while at >= 0:
        end = page.find("\n", at)
        end = len(page) if end < 0 else end
        if (at == 0 or page[at - 1] == "\n") and page[at + size : at + size + 1] in ("{", " ", "\t"):
            yield _series(page[at + size : end])
        at = page.find(name, end)


def _series(text: str) -> tuple[Mapping[str, str], float]:
    """`{labels} value [timestamp]`, the labels being optional."""
    open_, close = text.find("{"), text.rfind("}")
    if (open_ < 0) != (close < 0) or text[: max(0, open_)].strip():
        raise Unreadable(f"no series: {text[:100]}")
    fields = text[close + 1 :].split()
    try:
        value, *timestamp = map(float, fields)
    except ValueError:
        raise Unreadable(f"no number: {text[:100]}") from None
    if len(timestamp) > 1:
        raise Unreadable(f"no series: {text[:100]}")
    return _labels(text[open_ + 1 : close]) if close >= 0 else {}, value


@lru_cache(_KNOWN)
def _labels(text: str) -> Mapping[str, str]:
    if not _LABELS.fullmatch(text):
        raise Unreadable(f"no labels: {text[:100]}")
    return {key: _ESCAPED.sub(_unescaped, value) for key, value in _PAIRS.findall(text)}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
