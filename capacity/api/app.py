"""custom.metrics.k8s.io/v1beta2 for pods: discovery, values, probes, and the controller's own metrics."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from capacity.kube import NAMES_ONLY, Kube, KubeError
from capacity.pods import PodBook
from capacity.samples import SampleBook
from capacity.telemetry import Telemetry
from rules.metrics.served import GROUP, SERVED, VERSION

_NAMES = tuple(metric.name for metric in SERVED)
_CACHE_SECONDS = 1.0
_CACHE_SIZE = 1000


@dataclass(frozen=True)
class Sources:
    """What answers are made from; `allowed` says whether the peer with this common name may ask."""

    namespace: str
    kube: Kube
    pods: PodBook
    samples: SampleBook
    allowed: Callable[[str | None], bool]


def api(sources: Sources) -> Starlette:
    """The aggregated API. Authentication: the front proxy's client certificate; authorisation happened before it called."""
    selection = PodSelection(sources.kube)

    def guarded(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guard(request: Request) -> Response:
            if not sources.allowed(getattr(request.state, "peer", None)):
                return failure(401, "Unauthorized", "only the API server's front proxy may ask")
            return await endpoint(request)

        return guard

    async def values(request: Request) -> Response:
        return await _values(request, sources, selection)

    root = f"/apis/{GROUP}/{VERSION}"
    return Starlette(
        routes=[
            Route("/healthz", _ok),
            Route("/readyz", _ready(sources)),
            Route("/livez", _ok),
            Route(root, guarded(_discovery)),
            Route(f"{root}/namespaces/{{namespace}}/pods/{{name}}/{{metric}}", guarded(values)),
        ]
    )


def telemetry_app(telemetry: Telemetry) -> Starlette:
    """The plain-text page for Prometheus, on its own port."""

    async def page(_: Request) -> Response:
        return PlainTextResponse(generate_latest(telemetry.registry), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/metrics", page)])


class PodSelection:
    """Names of the pods that a selector string means, asked of the API server: it alone parses selectors.

    An HPA asks for several metrics in a row, so an answer is kept for a second.
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._kept: dict[tuple[str, str], tuple[float, list[str]]] = {}

    async def names(self, namespace: str, selector: str) -> list[str]:
        """The pods' names. Raises KubeError."""
        key, now = (namespace, selector), time.monotonic()
        kept = self._kept.get(key)
        if kept and now - kept[0] < _CACHE_SECONDS:
            return kept[1]
        path = f"/api/v1/namespaces/{namespace}/pods"
        listed = await self._kube.get(path, {"labelSelector": selector} if selector else {}, accept=NAMES_ONLY)
        found = [item["metadata"]["name"] for item in listed["items"]]
        if len(self._kept) >= _CACHE_SIZE:
            self._kept.clear()
        self._kept[key] = (now, found)
        return found


async def _values(request: Request, sources: Sources, selection: PodSelection) -> Response:
    namespace, name = request.path_params["namespace"], request.path_params["name"]
    metric = request.path_params["metric"]
    if namespace != sources.namespace or metric not in _NAMES:
        return failure(404, "NotFound", f"no metric {metric} of pods in namespace {namespace}")
    try:
        names = (
            [name] if name != "*" else await selection.names(namespace, request.query_params.get("labelSelector", ""))
        )
    except KubeError as error:
        return failure(error.status if error.status == 400 else 503, "ServiceUnavailable", f"listing pods: {error}")
    now = time.monotonic()
    items = []
    for pod in filter(None, map(sources.pods.get, names)):
        if found := sources.samples.value(pod, metric, now):
            items.append(_item(namespace, pod.name, metric, found.value, found.wall))
    if name != "*" and not items:
        return failure(404, "NotFound", f"no fresh value of {metric} for pod {name}")
    return JSONResponse({"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items})


def _item(namespace: str, pod: str, metric: str, value: float, wall: float) -> dict[str, Any]:
    return {
        "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "/v1"},
        "metric": {"name": metric},
        "timestamp": datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "value": f"{round(value * 1000)}m",
    }


async def _discovery(_: Request) -> Response:
    resources = [
        {"name": f"pods/{name}", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
        for name in _NAMES
    ]
    return JSONResponse(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}", "resources": resources}
    )


async def _ok(_: Request) -> Response:
    return PlainTextResponse("ok")


def _ready(sources: Sources) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_: Request) -> Response:
        """Before the first list of pods every answer would be empty, and an empty answer holds the HPA."""
        if sources.pods.synced.is_set():
            return PlainTextResponse("ok")
        return PlainTextResponse("the pods are not listed yet", status_code=503)

    return ready


def failure(code: int, reason: str, message: str) -> JSONResponse:
    """A Kubernetes Status object."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return JSONResponse(body, status_code=code)
