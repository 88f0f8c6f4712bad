"""The Kubernetes API as smoke needs it: reads, the pod proxy, and two ConfigMaps of its own."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx
import kr8s
from kr8s.asyncio import api as connect_api

from settings.cluster import ClusterSettings
from settings.temporary import private_folder
from smoke.errors import PermanentError, SmokeError, TemporaryError

TIMEOUT: Final = 30.0
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and text of a call, also of a refused one."""

    status: int
    text: str

    def json(self) -> Any:
        """The text as JSON."""
        return json.loads(self.text)


class Cluster:
    """One cluster and the stack's namespace in it."""

    def __init__(self, api: Any, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    @classmethod
    async def connect(cls, settings: ClusterSettings) -> "Cluster":
        """The cluster of the stack configuration. Raises SmokeError when it can't be reached."""
        private_folder()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Kubernetes version", UserWarning)  # newer than kr8s was tested with
                api = await connect_api(
                    kubeconfig=settings.kubeconfig_path, context=settings.context, namespace=settings.namespace
                )
        except (ValueError, OSError, kr8s.ServerError, kr8s.APITimeoutError, httpx.HTTPError) as error:
            raise TemporaryError(
                f"the cluster {settings.identifier} is not reachable: {error or type(error).__name__}",
                "check moonstack:cluster.kubeconfig and context, and whether the API server is up",
            ) from None
        return cls(api, settings.namespace)

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> Reply:
        """One call; every status comes back. Raises TemporaryError when the API server does not answer."""
        try:
            async with self.api.call_api(
                method,
                version="",
                base=path.rsplit("/", 1)[0],
                url=path.rsplit("/", 1)[1],
                raise_for_status=False,
                params=dict(params or {}),
                content=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": kind, "Accept": accept},
                timeout=TIMEOUT,
            ) as response:
                return Reply(response.status_code, response.text)
        except (kr8s.APITimeoutError, httpx.HTTPError) as error:
            raise TemporaryError(
                f"the API server does not answer: {error or type(error).__name__}", "check the cluster, then run again"
            ) from None

    async def get(self, path: str) -> Object | None:
        """An object, or None when there is none. Raises SmokeError."""
        reply = await self.call("GET", path)
        if reply.status == 404:
            return None
        if reply.status != 200:
            raise _refused(reply, path)
        return reply.json()

    async def items(self, path: str, selector: Mapping[str, str] | None = None) -> list[Object]:
        """The items of a list by label; empty when the API does not exist. Raises SmokeError."""
        text = ",".join(f"{key}={value}" for key, value in (selector or {}).items())
        reply = await self.call("GET", path, params={"labelSelector": text} if text else None)
        if reply.status == 404:
            return []
        if reply.status != 200:
            raise _refused(reply, path)
        return reply.json()["items"]

    async def pods(self, selector: Mapping[str, str]) -> list[Object]:
        """The namespace's pods with these labels."""
        return await self.items(self.path("pods"), selector)

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        """The URL path of a namespaced resource of the core group, or of `group` such as `apps/v1`."""
        root = f"/apis/{group}" if group else "/api/v1"
        return f"{root}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    async def through_pod(self, pod: str, port: int, path: str, *, body: Any = None) -> Reply:
        """A request to a pod's port, carried by the API server: GET, or POST when there is a body."""
        target = f"{self.path('pods')}/{pod}:{port}/proxy/{path.lstrip('/')}"
        return await self.call("GET" if body is None else "POST", target, body=body)


def ready(pod: Object) -> bool:
    """Whether a pod is Ready and not about to go."""
    conditions = pod.get("status", {}).get("conditions", ())
    return "deletionTimestamp" not in pod["metadata"] and any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _refused(reply: Reply, path: str) -> SmokeError:
    message = ""
    try:
        message = reply.json().get("message", "")
    except (ValueError, AttributeError):
        message = reply.text[:200]
    if reply.status in (401, 403):
        return PermanentError(f"the API server refuses {path}: {message}", "grant the reader's Role of docs/smoke.md")
    return TemporaryError(f"the API server answered {reply.status} for {path}: {message}", "run again")
