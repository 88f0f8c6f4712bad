"""Objects from files: rendered manifests, or an exported Pulumi state."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from policies.objects import Object
from policies.state import is_state, state_objects

SUFFIXES: Final = (".yaml", ".yml", ".json")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ManifestError(Exception):
    """A file could not be read as manifests; one line for the user."""


def load(path: Path) -> list[Object]:
    """All objects below a folder, or of one file. Raises ManifestError, also when there is nothing to read."""
    if not path.exists():
        raise ManifestError(f"{path}: no such file or folder")
    files = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES) if path.is_dir() else [path]
    root = path if path.is_dir() else path.parent
    objects = [one for file in files for one in _file(file, str(file.relative_to(root)))]
    if not objects:
        raise ManifestError(f"{path}: holds no Kubernetes object and no state (looked for {', '.join(SUFFIXES)})")
    return objects


def _file(file: Path, source: str) -> Iterator[Object]:
    for document in _documents(file):
        if is_state(document):
            yield from state_objects(document, source)
        else:
            yield from (Object(one, source=source) for one in _expanded(document) if "kind" in one)


def _documents(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        text = file.read_text()
        documents = [json.loads(text)] if file.suffix == ".json" else list(yaml.load_all(text, Loader=_LOADER))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ManifestError(f"{file}: cannot be read: {reason[:200]}") from None
    yield from (document for document in documents if isinstance(document, Mapping))


def _expanded(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The items of a List, else the document itself."""
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        yield from (item for item in items if isinstance(item, Mapping))
    else:
        yield document
