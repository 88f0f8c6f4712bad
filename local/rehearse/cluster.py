"""What a rehearsal puts into the local cluster before and beside Pulumi, and takes away again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local.cluster.addons import kwok
from local.cluster.addons.kwok import SimulatedPool, simulate_nodes
from local.cluster.api import Api, wait_until
from local.cluster.layout import NODE
from local.errors import LocalError
from local.rehearse.crds import custom_resources
from local.rehearse.overrides import NAMESPACE
from settings.settings import Settings

GONE_SECONDS = 120.0
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def stage(api: Api, pools: list[SimulatedPool], settings: Settings) -> Iterator[None]:
    """Simulated nodes and the CRDs that the stack needs; the real node takes no new pods meanwhile. All undone at the end."""
    _cordon(api, True)
    try:
        with definitions(api, custom_resources(settings)):
            simulate_nodes(api, pools)
            wait_until(lambda: _all_ready(api, pools), "the simulated nodes' readiness", 60.0)
            simulate_nodes(api, pools)  # KWOK gives a new node a shape of its own, sometimes after ours
            try:
                yield
            finally:
                remove_namespace(api)
    finally:
        for pool in pools:
            kwok.remove_simulated_nodes(api, pool.name)
        _cordon(api, False)


@contextmanager
def definitions(api: Api, documents: list[dict[str, Any]]) -> Iterator[None]:
    """Serve custom resources while this lasts; definitions that were there before are left as they are."""
    paths = {f"{_DEFINITIONS}/{document['metadata']['name']}": document for document in documents}
    missing = {path: document for path, document in paths.items() if not exists(api, path)}
    try:
        for path, document in missing.items():
            api.apply(document, path)
        for path, document in missing.items():
            wait_until(lambda path=path: _established(api, path), f"{path} being served", 30.0)
            wait_until(lambda document=document: _listed(api, document), f"{path} being stored", 30.0)
        yield
    finally:
        for path in missing:
            api.delete(path)
        for path in missing:
            wait_until(lambda path=path: not exists(api, path), f"the end of {path}", GONE_SECONDS)


def provide_volumes(api: Api, settings: Settings) -> None:
    """Static volumes for the claims that hold weights: production has them, the local cluster has no storage."""
    for claim in sorted(claims(settings)):
        name = f"{NAMESPACE}-{claim}"
        spec = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": {"moonstack.dev/rehearsal": "true"}},
            "spec": {**spec, "capacity": {"storage": "1Ti"}, "hostPath": {"path": "/var/empty"}},
        }
        wanted = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": NAMESPACE},
            "spec": {**spec, "volumeName": name, "resources": {"requests": {"storage": "1Ti"}}},
        }
        api.apply(volume, f"/api/v1/persistentvolumes/{name}")
        api.apply(wanted, f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/{claim}")


def claims(settings: Settings) -> set[str]:
    """Claims that models mount their weights from."""
    return {model.weights.location.partition("/")[0] for model in settings.models if model.weights.source == "pvc"}


def remove_namespace(api: Api) -> None:
    """Delete the rehearsal's namespace and volumes, and wait until they are gone."""
    path = f"/api/v1/namespaces/{NAMESPACE}"
    api.delete(path)
    api.delete("/api/v1/persistentvolumes", labelSelector="moonstack.dev/rehearsal=true")
    wait_until(lambda: not exists(api, path), f"the end of namespace {NAMESPACE}", GONE_SECONDS)


def exists(api: Api, path: str) -> bool:
    """Whether there is an object at a path."""
    try:
        api.get(path)
    except LocalError:
        return False
    return True


def items(api: Api, path: str) -> list[dict[str, Any]]:
    """The objects of a list, none if its kind isn't served."""
    try:
        return api.get(path)["items"]
    except LocalError:
        return []


def _cordon(api: Api, unschedulable: bool) -> None:
    api.patch(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": unschedulable or None}})


def _established(api: Api, path: str) -> bool:
    conditions = api.get(path).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _listed(api: Api, definition: dict[str, Any]) -> bool:
    """A definition that is deleted before its storage is ready stays for minutes: the API server's clean-up lists first."""
    spec = definition["spec"]
    return all(
        exists(api, f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
        for version in spec["versions"]
        if version["served"]
    )


def _all_ready(api: Api, pools: list[SimulatedPool]) -> bool:
    wanted = sum(pool.count for pool in pools)
    nodes = api.get("/api/v1/nodes", labelSelector=f"{kwok.SIMULATED}=true")["items"]
    ready = [
        node
        for node in nodes
        if any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions") or ())
    ]
    return len(ready) >= wanted
