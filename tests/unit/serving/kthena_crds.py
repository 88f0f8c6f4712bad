"""Validation against Kthena's own CRDs, as strict as the API server's: unknown fields are errors. CEL rules need a real server."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from local.errors import LocalError
from local.rehearse.crds import crd_files
from rules.kthena import Release


def crds(release: Release) -> list[Path]:
    """The CRDs of a release. Where nothing has them, it fails in CI and skips elsewhere."""
    try:
        return crd_files(release)
    except LocalError as error:
        pytest.fail(str(error)) if os.environ.get("CI") else pytest.skip(str(error))


def kinds(release: Release) -> set[str]:
    """The kinds that a release serves."""
    return set(_schemas(release))


def errors(release: Release, manifest: dict[str, Any]) -> list[str]:
    """What the API server of a release would refuse in an object."""
    schema = _schemas(release).get(manifest["kind"])
    if schema is None:
        return [f"no kind {manifest['kind']} in Kthena {release}"]
    body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    found = jsonschema.Draft202012Validator(schema).iter_errors(body)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


@cache
def _schemas(release: Release) -> dict[str, dict[str, Any]]:
    schemas = {}
    for path in crds(release):
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
