"""The few calls that the controller makes to the API server, over plain HTTP."""

import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MERGE = "application/merge-patch+json"
OPERATIONS = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class KubeError(Exception):
    """The API server refused or could not be reached; `status` is 0 when it could not be reached."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status or 'unreachable'}: {message}")
        self.status = status


@dataclass(frozen=True)
class Access:
    """How to reach the API server. The token is read for every call, as it is rotated."""

    url: str
    tls: ssl.SSLContext | bool
    token_file: Path | None = None

    @classmethod
    def in_cluster(cls) -> Self:
        """Access by the pod's service account. Raises KeyError outside a pod."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        host = f"[{host}]" if ":" in host else host
        tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        return cls(f"https://{host}:{port}", tls, ACCOUNT / "token")


class Kube:
    """A client of the API server; every call has a deadline, so a dead server never hangs the controller."""

    def __init__(self, access: Access, timeout: float = 5.0) -> None:
        self._access = access
        self._http = httpx.AsyncClient(base_url=access.url, verify=access.tls, timeout=timeout, trust_env=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def get(self, path: str, params: Mapping[str, str] | None = None, accept: str = "application/json") -> Any:
        """GET a JSON document. Raises KubeError."""
        return await self._call("GET", path, params=dict(params or {}), headers={"accept": accept})

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Merge-patch an object. Raises KubeError."""
        return await self._call("PATCH", path, content=json.dumps(body), headers={"content-type": MERGE})

    async def operate(self, path: str, operations: Sequence[Mapping[str, Any]]) -> bool:
        """JSON-patch an object: all operations or none. False where one doesn't fit what is there, or nothing is. Raises KubeError."""
        headers = {"content-type": OPERATIONS, "accept": METADATA_ONLY}
        try:
            await self._call("PATCH", path, content=json.dumps(operations), headers=headers)
        except KubeError as error:
            if error.status not in (404, 422):
                raise
            return False
        return True

    async def apply(self, path: str, body: Mapping[str, Any], manager: str) -> Any:
        """Server-side apply exactly the given fields as their owner. Raises KubeError."""
        params = {"fieldManager": manager, "force": "true"}
        return await self._call("PATCH", path, params=params, content=json.dumps(body), headers={"content-type": APPLY})

    async def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST an object. Raises KubeError."""
        return await self._call("POST", path, content=json.dumps(body), headers={"content-type": "application/json"})

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """Replace an object; its resourceVersion makes this an optimistic lock. Raises KubeError."""
        return await self._call("PUT", path, content=json.dumps(body), headers={"content-type": "application/json"})

    async def watch(self, path: str, params: Mapping[str, str], seconds: int = 240) -> AsyncIterator[dict[str, Any]]:
        """Events of a watch until the server ends it after `seconds`. Raises KubeError."""
        query = {**params, "watch": "true", "timeoutSeconds": str(seconds), "allowWatchBookmarks": "true"}
        try:
            timeout = httpx.Timeout(5.0, read=seconds + 15)
            async with self._http.stream("GET", path, params=query, headers=self._auth(), timeout=timeout) as response:
                if response.is_error:
                    raise KubeError(response.status_code, (await response.aread()).decode(errors="replace")[:300])
                async for line in response.aiter_lines():
                    if line:
                        yield json.loads(line)
        except (httpx.HTTPError, json.JSONDecodeError) as error:
            raise KubeError(0, str(error) or type(error).__name__) from error

    async def _call(self, method: str, path: str, headers: Mapping[str, str], **request: Any) -> Any:
        try:
            response = await self._http.request(method, path, headers={**headers, **self._auth()}, **request)
        except httpx.HTTPError as error:
            raise KubeError(0, str(error) or type(error).__name__) from error
        if response.is_error:
            raise KubeError(response.status_code, response.text[:300])
        return response.json()

    def _auth(self) -> dict[str, str]:
        if self._access.token_file is None:
            return {}
        return {"authorization": f"Bearer {self._access.token_file.read_text().strip()}"}
