"""Kthena 0.4 → 1.0 on a real API server: the stack's objects of 0.4, the CRDs of 1.0 laid over those of 0.4, and the stack of 1.0."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local.cluster.api import Api
from local.rehearse.cluster import definitions, exists
from local.rehearse.crds import custom_resources
from rules import kthena
from tests.real.conftest import kubectl
from tests.real.test_kthena_objects import api, namespace, rendered, settings  # noqa: F401  (fixtures)
from tests.unit.serving.kthena_crds import crds

NAMESPACE = "moonstack"
IN_PLACE = ("ModelServing", "ModelServer", "ModelRoute")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_a_stack_goes_from_0_4_to_1_0_in_place_and_leaves_nothing_of_0_4(
    api: Api,  # noqa: F811
    namespace: None,  # noqa: F811
    tmp_path: Path,
):
    for release in kthena.KINDS:
        crds(release)
    old, new = (objects_of(release, tmp_path / release) for release in kthena.KINDS)
    with definitions(api, custom_resources(settings("0.4"))):
        applied(tmp_path / "0.4", old)
        before = {key: uid(*key) for key in old}
        with upgraded(api):
            assert not served("AutoscalingPolicyBinding"), "1.0 has none"
            for key in before:
                if key[0] != "AutoscalingPolicyBinding":
                    assert uid(*key) == before[key], f"{key} is gone with the upgrade of the CRDs"
            applied(tmp_path / "1.0", new)
            for key in new:
                if key[0] in IN_PLACE:
                    assert uid(*key) == before[key], f"{key} was made anew: its engines would have been"
            for kind, name in old.keys() - new.keys():
                if kind != "AutoscalingPolicyBinding":
                    kubectl("-n", NAMESPACE, "delete", kind, name)
            assert {key for key in old.keys() | new.keys() if served(key[0]) and uid(*key)} == set(new)
            applied(tmp_path / "1.0", new)


def objects_of(release: kthena.Release, folder: Path) -> dict[tuple[str, str], Path]:
    """Kthena's own objects of the production stack as files, by kind and name."""
    folder.mkdir()
    kinds = set(kthena.KINDS[release])
    found = {}
    for path in rendered(release, folder).iterdir():
        manifest = yaml.safe_load(path.read_text())
        if manifest["kind"] in kinds:
            found[(manifest["kind"], manifest["metadata"]["name"])] = path
        else:
            path.unlink()
    assert {kind for kind, _ in found} == kinds, "the production stack shows every kind of the release"
    return found


def applied(folder: Path, objects: dict[Any, Path]) -> None:
    """Apply a folder in strict mode; a definition that was just changed is read by its new schema a moment later."""
    flags = ("--server-side", "--validate=strict", "--force-conflicts")
    said = ""
    for attempt in range(10):
        said = kubectl("apply", *flags, "-f", str(folder), check=attempt == 9)
        if said.count("serverside-applied") == len(objects):
            return
        time.sleep(2)
    raise AssertionError(said)


@contextmanager
def upgraded(api: Api) -> Iterator[None]:  # noqa: F811
    """The CRDs of 1.0 over those of 0.4, as its charts lay them, and those that 1.0 has no more removed."""
    documents = {f"{DEFINITIONS}/{each['metadata']['name']}": each for each in custom_resources(settings("1.0"))}
    kept = {f"{DEFINITIONS}/{each['metadata']['name']}" for each in custom_resources(settings("0.4"))}
    for path, document in documents.items():
        api.apply(document, path)
    for path in kept - documents.keys():
        api.delete(path)
        kubectl("wait", "--for=delete", f"crd/{path.rpartition('/')[2]}", "--timeout=60s", check=False)
    try:
        yield
    finally:
        for path in documents.keys() - kept:
            if exists(api, path):
                api.delete(path)


def served(kind: str) -> bool:
    return f" {kind}\n" in "".join(f" {line.split()[-1]}\n" for line in kubectl("api-resources").splitlines())


def uid(kind: str, name: str) -> str:
    """The object's uid, empty if it isn't there."""
    said = kubectl("-n", NAMESPACE, "get", kind.lower(), name, "-o", "json", check=False)
    return json.loads(said)["metadata"]["uid"] if said.strip() else ""
