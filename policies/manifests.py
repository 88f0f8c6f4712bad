"""Objects from files: rendered manifests, or an exported Pulumi state."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from policies.comments import comments
from policies.objects import Object
from policies.state import is_state, state_objects
from policies.unwrap import LOADER

SUFFIXES: Final = (".yaml", ".yml", ".json")
_MOST_VALUES: Final = 1_000_000
"""Values of one document with its aliases written out; a rendered stack has some ten thousand."""


class ManifestError(Exception):
    """A file could not be read as manifests; one line for the user."""


def load(path: Path) -> list[Object]:
    """All objects below a folder, or of one file. Raises ManifestError, also when there is nothing to read."""
    if not path.exists():
        raise ManifestError(f"{path}: no such file or folder")
    files = (
        sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES and not one.is_dir())
        if path.is_dir()
        else [path]
    )
    root = path if path.is_dir() else path.parent
    objects = [one for file in files for one in _file(file, str(file.relative_to(root)))]
    if all(one.type == "document" for one in objects):
        raise ManifestError(f"{path}: holds no Kubernetes object and no state (looked for {', '.join(SUFFIXES)})")
    return objects


def _file(file: Path, source: str) -> Iterator[Object]:
    text = _text(file)
    if file.suffix != ".json":
        for line, comment in comments(text):
            yield Object({"comment": comment}, type="document", source=f"{source} line {line} rest")
    for document in _documents(file, text):
        if is_state(document):
            yield from _of_state(file, document, source)
        else:
            for one in _expanded(document):
                # a patch or a chart's values, say: searched for keys, and not judged as an object
                yield (
                    Object(one, source=source)
                    if "kind" in one
                    else Object(one, type="document", source=f"{source} rest")
                )


def _of_state(file: Path, document: Mapping[str, Any], source: str) -> list[Object]:
    try:
        return list(state_objects(document, source))
    except (AttributeError, TypeError, ValueError):
        raise ManifestError(
            f"{file}: cannot be read: is no state as `pulumi stack export` writes it; export it again"
        ) from None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: Exception) -> ManifestError:
    return ManifestError(f"{file}: cannot be read: {' '.join(str(error).split())[:200]}")


def _documents(file: Path, text: str) -> Iterator[Mapping[str, Any]]:
    try:
        documents = [json.loads(text)] if file.suffix == ".json" else _yaml(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise _unreadable(file, error) from None
    yield from _mappings(documents)


def _mappings(documents: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Documents, and those in a list of them; any other text is searched for keys as the value of a nameless field."""
    for document in documents:
        if isinstance(document, Mapping):
            yield document
        elif isinstance(document, list):
            yield from _mappings(document)
        elif document is not None:
            yield {"": document}


def _yaml(text: str) -> list[Any]:
    """Raises ValueError for a document that is endless, or nearly so, because of its aliases."""
    documents = list(yaml.load_all(text, Loader=LOADER))
    if _size(documents, {}) > _MOST_VALUES:
        raise ValueError(f"aliases make more than {_MOST_VALUES:,} values of it; write them out")
    return documents


def _size(value: Any, known: dict[int, int]) -> int:
    """Values below one, aliases written out; each is visited once, and one inside itself counts as too many."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = _MOST_VALUES + 1
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(item, known) for item in items)
    return known[id(value)]


def _expanded(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The items of a List, else the document itself."""
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        # an item that is no object is judged as one without a kind, never passed over
        yield from (item if isinstance(item, Mapping) else {"kind": None, "item": item} for item in items)
    else:
        yield document
