"""A small client of the local cluster's API server: read, apply, patch, delete."""

import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from local.errors import LocalError

FIELD_MANAGER = "moonstack-local"

_PLURALS = {
    "Node": "nodes",
    "Namespace": "namespaces",
    "Service": "services",
    "EndpointSlice": "endpointslices",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
}

Object = Mapping[str, Any]


class Api:
    """Requests to the API server with a client certificate; every method raises LocalError with the server's own words."""

    def __init__(self, server: str, authority: Path, certificate: Path, key: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(certificate, key)
        self._client = httpx.Client(base_url=server, verify=context, timeout=10.0, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ready(self) -> bool:
        """Whether the API server answers and says that it is ready."""
        try:
            return self._client.get("/readyz", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        """The object or list at a path."""
        return self._send("GET", path, params=parameters).json()

    def apply(self, document: Object, path: str | None = None) -> dict[str, Any]:
        """Server-side apply of one object, taking over fields that someone else set; `path` for kinds that aren't known here."""
        parameters = {"fieldManager": FIELD_MANAGER, "force": "true"}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        path = path or _path(document)
        return self._send("PATCH", path, content=json.dumps(document), headers=headers, params=parameters).json()

    def try_out(self, document: Object, path: str) -> dict[str, Any]:
        """What a new object would become in the list at `path`; nothing is written, and a field that the server doesn't know is refused."""
        parameters = {"dryRun": "All", "fieldValidation": "Strict"}
        return self._send("POST", path, json=dict(document), params=parameters).json()

    def patch(self, path: str, document: Object) -> dict[str, Any]:
        """Merge patch of the object at a path."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._send("PATCH", path, content=json.dumps(document), headers=headers).json()

    def delete(self, path: str, **parameters: str) -> None:
        """Delete the object, or the selected objects of the list, at a path; one that is gone already is fine."""
        self._send("DELETE", path, params=parameters, accepted=(404,))

    def _send(self, method: str, path: str, *, accepted: tuple[int, ...] = (), **request: Any) -> httpx.Response:
        try:
            response = self._client.request(method, path, **request)
        except httpx.HTTPError as error:
            raise LocalError(
                f"the API server does not answer {method} {path}: {error or type(error).__name__}"
            ) from None
        if response.is_success or response.status_code in accepted:
            return response
        raise LocalError(f"the API server refused {method} {path}: {_message(response)}")


def wait_until(condition: Any, what: str, seconds: float, poll: float = 0.2) -> None:
    """Call `condition` until it is true; raises LocalError naming `what` when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LocalError(f"{what} did not happen in {seconds:.0f} s; see: python -m local logs")
        time.sleep(poll)


def _path(document: Object) -> str:
    version, metadata = document["apiVersion"], document["metadata"]
    root = "/api" if "/" not in version else "/apis"
    scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}/{version}{scope}/{_PLURALS[document['kind']]}/{metadata['name']}"


def _message(response: httpx.Response) -> str:
    try:
        return response.json()["message"]
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}"
