"""A stack's objects as YAML, one file an object: what Pulumi would apply, read from its own preview."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from local.errors import LocalError
from local.workspace import offline

OFFLINE = {"MOONSTACK_OFFLINE": "1", "PULUMI_OPTION_POLICY_PACK": ""}
"""Placeholder keys are accepted; `make preview` is where the policies judge."""
CLUSTER_SCOPED = "_cluster"
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
_HIDDEN = "[secret]"
_RENDERED = re.compile(r"[a-z]+\.[a-z0-9_-]+\.[^/]+\.yaml")
"""What `file_name` makes."""


def render(stack: str, folder: Path) -> list[Path]:
    """Write the objects of a stack to `<kind>.<namespace>.<name>.yaml`; files of an earlier rendering are replaced.

    Nothing is applied, no cluster is asked, and no secret is written: the keys are placeholders. Raises LocalError.
    """
    require_ours(folder)
    manifests = stack_manifests(stack)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(f"--out {folder}: cannot be made ({error.strerror}): give another folder") from None
    for path in folder.iterdir():
        path.unlink()
    written = []
    for manifest in manifests:
        path = folder / file_name(manifest)
        path.write_text(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=140))
        written.append(path)
    return sorted(written)


def require_ours(folder: Path) -> None:
    """Raises LocalError unless a folder is missing, empty, or holds nothing but files of an earlier rendering."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise LocalError(f"--out {folder}: is a file: give a new folder")
    if foreign := sorted(path.name for path in folder.iterdir() if not _RENDERED.fullmatch(path.name)):
        raise LocalError(f"--out {folder}: holds other files ({foreign[0]}, …): give a new folder")


def stack_manifests(stack: str, overrides: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Every Kubernetes object that the stack declares, from an offline preview."""
    with offline(stack, overrides or {}, OFFLINE) as here:
        return list(manifests_of(here.preview()["steps"]))


def manifests_of(steps: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The objects among a preview's steps; patches of nodes aren't objects of ours and stay out.

    Replicas that a scaler owns are left out: Pulumi ignores their changes, and whoever applies a file would undo them.
    """
    states = [step.get("newState") or {} for step in steps]
    kinds = [state.get("type", "") for state in states]
    objects = [
        _without_secrets(state["inputs"])
        for state, kind in zip(states, kinds, strict=True)
        if kind.startswith("kubernetes:") and not kind.endswith("Patch")
    ]
    scaled = {_target(one) for one in objects if one["kind"] in SCALERS}
    for one in objects:
        if (one["metadata"].get("namespace"), one["kind"], one["metadata"]["name"]) in scaled and "spec" in one:
            one["spec"] = {key: value for key, value in one["spec"].items() if key != "replicas"}
        yield one


def _target(scaler: dict[str, Any]) -> tuple[str | None, str, str]:
    reference = scaler["spec"]["scaleTargetRef"]
    return scaler["metadata"].get("namespace"), reference["kind"], reference["name"]


def file_name(manifest: dict[str, Any]) -> str:
    """`<kind>.<namespace>.<name>.yaml`, in lower case; `_cluster` stands for no namespace."""
    metadata = manifest["metadata"]
    return f"{manifest['kind'].lower()}.{metadata.get('namespace', CLUSTER_SCOPED)}.{metadata['name']}.yaml"


def _without_secrets(inputs: dict[str, Any]) -> dict[str, Any]:
    order = ("apiVersion", "kind", "metadata")
    shown = {key: value for key, value in inputs.items() if value != _HIDDEN and not key.startswith("__")}
    if shown.get("type") == "kubernetes.io/tls":
        shown["data"] = {"tls.crt": "", "tls.key": ""}  # the API server wants both names, whatever they hold
    return {**{key: shown[key] for key in order}, **{key: value for key, value in shown.items() if key not in order}}
