"""Validation against Kthena's own CRDs, as strict as the API server's: unknown fields are errors. CEL rules need a real server."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

FOLDERS = {"0.4": "kthena-v0.4.0", "1.0": "kthena-v1.0.0"}


def crd_folder(release: str) -> Path:
    """The CRDs of a release: beside KTHENA_CRDS, or in `../shared/crds`. Missing, it fails in CI and skips elsewhere."""
    given = os.environ.get("KTHENA_CRDS")
    root = Path(given).parent if given else Path(__file__).parents[4] / "shared" / "crds"
    folder = root / FOLDERS[release]
    if not folder.is_dir():
        reason = f"no CRDs of Kthena {release} in {folder}; set KTHENA_CRDS to the folder of a release"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return folder


def kinds(release: str) -> set[str]:
    """The kinds that a release serves."""
    return set(_schemas(release))


def errors(release: str, manifest: dict[str, Any]) -> list[str]:
    """What the API server of a release would refuse in an object."""
    schema = _schemas(release).get(manifest["kind"])
    if schema is None:
        return [f"no kind {manifest['kind']} in Kthena {release}"]
    body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    found = jsonschema.Draft202012Validator(schema).iter_errors(body)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


@cache
def _schemas(release: str) -> dict[str, dict[str, Any]]:
    schemas = {}
    for path in crd_folder(release).glob("*.yaml"):
        crd = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        body = {"type": "object", "properties": {key: properties[key] for key in ("spec", "status")}}
        schemas[crd["spec"]["names"]["kind"]] = _strict(body)
    return schemas


def _strict(schema: Any) -> Any:
    """The schema with unknown fields refused, and Kubernetes' own formats and int-or-string as JSON Schema has them."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items() if key not in ("format", "description", "default")}
    if schema.get("x-kubernetes-int-or-string"):
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        open_ended = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
        made.setdefault("additionalProperties", bool(open_ended))
    return made
