"""Every text in an object, also those wrapped in base64, JSON, TOML, YAML, URL escapes or gzip."""

import base64
import binascii
import json
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import yaml

from policies.unknown import is_unknown

DEPTH: Final = 6
"""Wrappings seen through; the deepest we write ourselves is base64 of JSON in an annotation: 2."""
LIMIT: Final = 4 * 2**20
"""Characters of one text that are unwrapped; a Kubernetes object has at most 1.5 MiB (etcd's limit)."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


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
        yield from texts(value.decode("latin-1"), path, field, wrapped)
    elif isinstance(value, Mapping):
        name = value.get("name") if "value" in value else None
        for key, item in value.items():
            inner = name if key == "value" and isinstance(name, str) else str(key)
            yield Text(_join(path, key), "", str(key), wrapped)
            yield from texts(item, _join(path, key), inner, wrapped)
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from texts(item, f"{path}[{index}]", field, wrapped)


def _inside(text: str, path: str, field: str, wrapped: tuple[str, ...]) -> Iterator[Text]:
    for how, value in _readings(text):
        yield from texts(value, path, field, (*wrapped, how))


def _readings(text: str) -> Iterator[tuple[str, Any]]:
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"') and (value := _json(stripped)) is not None:
        yield "JSON", value
    elif "\n" in stripped:
        if "=" in text and (value := _toml(text)) is not None:
            yield "TOML", value
        elif ":" in text:
            yield from (("YAML", value) for value in _yaml(text))
    if "%" in text and (plain := unquote(text)) != text:
        yield "URL escapes", plain
    for match in _BASE64.finditer(text):
        if (decoded := decode(match[0])) is not None:
            yield "base64", decoded


def decode(word: str) -> str | None:
    """The printable text that a base64 word holds (gzip seen through), or None."""
    body = word.rstrip("=").translate(str.maketrans("-_", "+/"))
    if len(body) % 4 == 1:
        return None
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        if data[:2] == b"\x1f\x8b":
            data = zlib.decompressobj(31).decompress(data, LIMIT)
        text = data.decode()
    except (binascii.Error, UnicodeDecodeError, zlib.error):
        return None
    return text if text and all(character.isprintable() or character in "\t\r\n" for character in text) else None


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list, str)) and value != text else None


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _yaml(text: str) -> Iterator[Any]:
    try:
        for document in yaml.load_all(text, Loader=_LOADER):
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
