"""An API server in memory: pods with watches, leases, HPAs, ConfigMaps; optimistic locking as the real one has."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from capacity.kube import Access, Kube


class FakeCluster:
    """Objects by path. `down` answers 503 to everything; `calls` lists writes as (method, path, body)."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str, Any]] = []
        self.down = False
        self.version = 0
        self.watchers: list[asyncio.Queue[dict[str, Any]]] = []
        self.watch_ends = asyncio.Event()

    def put(self, path: str, body: dict[str, Any]) -> None:
        self.version += 1
        known = path in self.objects
        body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": str(self.version)}}
        self.objects[path] = body
        if "/pods/" in path:
            for queue in self.watchers:
                queue.put_nowait({"type": "MODIFIED" if known else "ADDED", "object": body})

    def delete(self, path: str) -> None:
        body = self.objects.pop(path)
        for queue in self.watchers:
            queue.put_nowait({"type": "DELETED", "object": body})

    def pod(
        self,
        name: str,
        *,
        ready: bool = True,
        namespace: str = "n",
        ip: str = "127.0.0.1",
        labels: dict[str, str] | None = None,
    ) -> str:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        status = {"podIP": ip, "conditions": [{"type": "Ready", "status": str(ready)}]}
        meta = {"name": name, "uid": f"uid-{name}", "labels": labels or {}}
        self.put(path, {"metadata": meta, "status": status})
        return path

    def kube(self) -> Kube:
        kube = Kube(Access("http://cluster", tls=False))
        kube._http = httpx.AsyncClient(base_url="http://cluster", transport=httpx.ASGITransport(self.app()))
        return kube

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._serve, methods=["GET", "POST", "PUT", "PATCH"])])

    async def _serve(self, request: Request) -> Response:
        path = f"/{request.path_params['path']}"
        if self.down:
            return JSONResponse({"message": "down"}, status_code=503)
        if request.method == "GET":
            return await self._read(request, path)
        body = json.loads(await request.body())
        self.calls.append((request.method, path, body))
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return JSONResponse({"message": "exists"}, status_code=409)
            self.put(path, body)
            return JSONResponse(self.objects[path])
        return self._change(request, path, body)

    def _change(self, request: Request, path: str, body: dict[str, Any]) -> Response:
        if path not in self.objects:
            return JSONResponse({"message": "not found"}, status_code=404)
        old = self.objects[path]
        for key in ("resourceVersion", "uid"):
            given = body.get("metadata", {}).get(key)
            if given is not None and given != old["metadata"].get(key):
                return JSONResponse({"message": "conflict"}, status_code=409)
        self.put(path, body if request.method == "PUT" else _merged(old, body))
        return JSONResponse(self.objects[path])

    async def _read(self, request: Request, path: str) -> Response:
        if path in self.objects:
            return JSONResponse(self.objects[path])
        if not path.endswith("/pods"):
            return JSONResponse({"message": "not found"}, status_code=404)
        if request.query_params.get("watch"):
            return StreamingResponse(self._events())
        selector = request.query_params.get("labelSelector", "").replace(" in (engine,gateway)", "")
        wanted = [pair for pair in selector.split(",") if pair]
        items = [body for at, body in self.objects.items() if at.startswith(f"{path}/") and _selected(body, wanted)]
        return JSONResponse({"metadata": {"resourceVersion": str(self.version)}, "items": items})

    async def _events(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.watchers.append(queue)
        yield b""
        while True:
            yield json.dumps(await queue.get()).encode() + b"\n"


def _selected(body: dict[str, Any], wanted: list[str]) -> bool:
    labels = body["metadata"].get("labels", {})
    return all(
        labels.get(key) == value if eq else key in labels for key, eq, value in (w.partition("=") for w in wanted)
    )


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
