"""The selectors of a PromQL query with the functions around them: as much of the language as checking a rule needs."""

import re
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<matchers>\{(?:"(?:\\.|[^"\\])*"|[^}"])*\})
    |(?P<range>\[[^\]]*\])
    |(?P<number>\d+(?:\.\d+)?[a-z]*)
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_LABEL: Final = re.compile(r"""([A-Za-z_][A-Za-z0-9_]*)\s*(?:=~|!~|!=|=)""")
_AGGREGATIONS: Final = frozenset(
    {"sum", "avg", "max", "min", "count", "topk", "bottomk", "quantile", "stddev", "group"}
)
_GROUPING: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_OPERATORS: Final = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end"})


@dataclass(frozen=True, slots=True)
class Selector:
    """One series selector: its name, the labels it matches on, whether it has a range, and the enclosing calls, innermost first."""

    name: str
    labels: tuple[str, ...]
    ranged: bool
    calls: tuple[str, ...]


def selectors(query: str) -> list[Selector]:
    """All series selectors of a query. Raises ValueError for brackets that don't match."""
    tokens = [(m.lastgroup, m[0]) for m in _TOKEN.finditer(query) if m.lastgroup != "space"] + [("end", "")] * 2
    found: list[Selector] = []
    open_calls: list[str] = []
    call, grouping = "", False
    for index, (kind, text) in enumerate(tokens):
        follows = tokens[index + 1][1] if index + 1 < len(tokens) else ""
        if text == "(" and kind == "other":
            open_calls.append("<labels>" if grouping else call)
            call, grouping = (call, False) if grouping else ("", False)
        elif text == ")" and kind == "other":
            if not open_calls:
                raise ValueError("has a closing bracket too many")
            closed = open_calls.pop()
            if closed not in ("", "<labels>"):
                call = closed if follows in _GROUPING else ""
        elif kind == "name":
            if text in _GROUPING:
                grouping = follows == "("
            elif text in _AGGREGATIONS or follows == "(":
                call = text
            elif text not in _OPERATORS and "<labels>" not in open_calls:
                found.append(_selector(text, tokens[index + 1 :], open_calls))
    if open_calls:
        raise ValueError("has an opening bracket too many")
    return found


def _selector(name: str, rest: list[tuple[str | None, str]], open_calls: list[str]) -> Selector:
    labels: tuple[str, ...] = ()
    if rest[0][0] == "matchers":
        labels = tuple(_LABEL.findall(rest[0][1]))
        rest = rest[1:]
    return Selector(name, labels, rest[0][0] == "range", tuple(call for call in reversed(open_calls) if call))
