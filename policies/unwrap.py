"""Every text in an object, also those wrapped in base64, hexadecimal, archives, JSON, TOML, YAML or escapes."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import yaml

from policies.escapes import joined, unescaped
from policies.unknown import is_unknown
from policies.unpack import LIMIT, from_base32, from_base64, from_hexadecimal, readable
from rules.key_names import may_name_a_key

DEPTH: Final = 6
"""Wrappings seen through; the deepest we write ourselves is base64 of JSON in an annotation: 2."""
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML by the C parser, where PyYAML was built with it."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE64_LINES: Final = re.compile(r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{40,}+\r?\n[ \t]*+)+[A-Za-z0-9+/_-]+={0,2}")
"""Begun at the start of a line only, and never given back: else a megabyte in one line is read a million times."""
_BASE32: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{32,}={0,6}(?![A-Za-z0-9])")
_HEXADECIMAL: Final = re.compile(
    r"(?<![0-9a-fA-F])(?:(?:[0-9a-fA-F]{2}){16,}|(?:[0-9a-fA-F]{2}[ :]){16,}[0-9a-fA-F]{2})(?![0-9a-fA-F])"
)
_NESTED: Final = re.compile(r"""[{\[]\s*["{\[]""")
_CARRIERS: Final = frozenset({"value", "default", "content", "inline_string", "inline_bytes", "string", "text"})
"""Fields that say nothing of what they hold: the field around them does."""
_BESIDE: Final = ("name", "key", "header")
"""Neighbours of `value` that say what it is."""
_LONG_NAME: Final = 24
"""Characters of a field's name in which something may be wrapped; no shorter than the shortest key in base64."""
_SHORTEST_BYTES: Final = 19
REMEMBERED: Final = 4096
"""Characters of the longest text of which is remembered what was found in it; thousands of them take some tens of megabytes."""


_TOLERANT: Final[Any] = type("TolerantLoader", (LOADER,), {})
"""YAML with tags of its own: what stands under them is read as it is."""


def _untagged(loader: Any, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_TOLERANT.add_multi_constructor("", _untagged)


@dataclass(frozen=True, slots=True)
class Text:
    """One text: the path to it, the name of the field that holds it, and how it was wrapped."""

    path: str
    field: str
    text: str
    wrapped: tuple[str, ...] = ()
    unknown: bool = False

    def place(self) -> str:
        """The path, with the wrappings in words."""
        return f"{self.path} (inside {', '.join(self.wrapped)})" if self.wrapped else self.path


def texts(value: Any, path: str = "", field: str = "", wrapped: tuple[str, ...] = ()) -> Iterator[Text]:
    """All texts below a value, mapping keys included, in every wrapping; unknown values are given as such."""
    if is_unknown(value):
        yield Text(path, field, "", wrapped, unknown=True)
    elif isinstance(value, str):
        yield Text(path, field, value, wrapped)
        if len(wrapped) < DEPTH and len(value) <= LIMIT:
            yield from _inside(value, path, field, wrapped)
    elif isinstance(value, bytes):
        for text in readable(value):
            yield from texts(text, path, field, wrapped)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield Text(_join(path, key), "", str(key), wrapped)
            if len(str(key)) >= _LONG_NAME and len(wrapped) < DEPTH:
                yield from _inside(str(key), _join(path, "…"), "", wrapped)
            yield from texts(item, _join(path, key), _field(value, key, field), wrapped)
    elif isinstance(value, Sequence) and _are_bytes(value):
        yield from texts(bytes(value), path, field, wrapped)
    elif isinstance(value, Sequence):
        before: Any = None
        for index, item in enumerate(value):
            flag = before.lstrip("-") if isinstance(before, str) and before.startswith("-") else field
            yield from texts(item, f"{path}[{index}]", flag, wrapped)
            before = item


def _field(around: Mapping[Any, Any], key: Any, outer: str) -> str:
    """What names a value: its field; for one named `value`, the neighbour that says what it is; else the field around."""
    if key == "value":
        beside = [name for one in _BESIDE if isinstance(name := around.get(one), str)]
        return next((name for name in beside if may_name_a_key(name)), beside[0] if beside else outer)
    return outer if key in _CARRIERS else str(key)


def _are_bytes(value: Sequence[Any]) -> bool:
    """Whether a list is a text, number by number."""
    return len(value) >= _SHORTEST_BYTES and all(type(one) is int and 0 <= one <= 255 for one in value)


def _inside(text: str, path: str, field: str, wrapped: tuple[str, ...]) -> Iterator[Text]:
    for how, value in _known_readings(text) if len(text) <= REMEMBERED else _readings(text):
        yield from texts(value, path, field, (*wrapped, how))


@lru_cache(maxsize=8192)
def _known_readings(text: str) -> tuple[tuple[str, Any], ...]:
    """States, backups and previews say the same again and again."""
    return tuple(_readings(text))


def _readings(text: str) -> Iterator[tuple[str, Any]]:
    stripped = text.strip()
    whole = _json(stripped) if stripped[:1] in ("{", "[", '"') else None
    if whole is not None:
        yield "JSON", whole
    elif (start := _NESTED.search(stripped)) and (value := _json_from(stripped, start.start())) is not None:
        yield "JSON", value
    if whole is None and "\n" in stripped:
        if "=" in text and (value := _toml(text)) is not None:
            yield "TOML", value
        elif ":" in text:
            yield from (("YAML", value) for value in _yaml(text))
    if "%" in text and (plain := unquote(text)) != text:
        yield "URL escapes", plain
    yield from (("escapes", plain) for plain in unescaped(text))
    yield from (("pieces", plain) for plain in joined(text))
    for match in _BASE64.finditer(text):
        yield from (("base64", inner) for inner in from_base64(match[0]))
    for match in _BASE64_LINES.finditer(text):
        yield from (("base64", inner) for inner in from_base64(re.sub(r"\s", "", match[0])))
    for match in _BASE32.finditer(text):
        yield from (("base32", inner) for inner in from_base32(match[0]))
    for match in _HEXADECIMAL.finditer(text):
        yield from (("hexadecimal", inner) for inner in from_hexadecimal(match[0]))


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list, str)) and value != text else None


def _json_from(text: str, start: int) -> Any:
    """JSON in the middle of a text, such as the value of a flag."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _yaml(text: str) -> Iterator[Any]:
    try:
        for document in yaml.load_all(text, Loader=_TOLERANT):
            if isinstance(document, (dict, list)):
                yield document
    except (yaml.YAMLError, ValueError, RecursionError):
        return


def _join(path: str, key: object) -> str:
    word = str(key)
    simple = re.fullmatch(r"[A-Za-z0-9_-]+", word)
    if not simple:
        return f"{path}[{json.dumps(word)}]"
    return f"{path}.{word}" if path else word
