"""The registry's Secret in every pod spec of an object, wherever the object's kind keeps it."""

from collections.abc import Mapping
from typing import Any, Final

WORKLOADS: Final = frozenset({"Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "ModelServing"})


def with_pull_secret(manifest: Mapping[str, Any], secret: str | None) -> Mapping[str, Any]:
    """The manifest with `imagePullSecrets` in its pod specs; objects without pods are returned as they are."""
    if secret is None or manifest["kind"] not in WORKLOADS:
        return manifest
    return _filled(manifest, secret)


def _filled(value: Any, secret: str) -> Any:
    if isinstance(value, list):
        return [_filled(each, secret) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "containers" in value:
        return {**value, "imagePullSecrets": [{"name": secret}]}
    return {key: _filled(each, secret) for key, each in value.items()}
