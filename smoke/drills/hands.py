"""What a drill does to a cluster, and how it knows that it is over."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Set
from datetime import UTC, datetime
from typing import Any, Final

from kr8s.asyncio.objects import Pod

from rules import labels, names
from rules.kthena import SERVING_LABEL, WORKLOAD
from smoke.cluster import Cluster, Object, Reply, ready
from smoke.drills.serving import Patch, ServingRole, whole
from smoke.errors import PermanentError, SmokeError, TemporaryError

MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
PATIENCE_SECONDS: Final = 900.0
GONE: Final = (404, 409)
"""Of an eviction: the pod went with its group, and perhaps another has its name."""
FIELD_MANAGER: Final = {"fieldManager": "moonstack-drill"}
Engines = Object | ServingRole
"""A Deployment, or what stands for one on Kthena."""


class Hands:
    """Writes that need more than a reader's rights; each waits for its own end. All raise SmokeError."""

    def __init__(self, cluster: Cluster, patience: float = PATIENCE_SECONDS, pause: float = 1.0) -> None:
        self.cluster = cluster
        self._patience = patience
        self._pause = pause

    async def deployments(self, selector: dict[str, str]) -> list[Object]:
        """Deployments whose pods carry these labels. Raises PermanentError when there is none."""
        if found := await self._deployments(selector):
            return found
        raise PermanentError(f"no Deployment has pods with {selector}", "deploy the stack first")

    async def engines(self, model: str, role: str) -> Engines:
        """The first Deployment of a role of a model, or the role of its ModelServing. Raises PermanentError."""
        found = await self._deployments({labels.MODEL: names.slug(model), labels.ROLE: role})
        if found:
            return next((one for one in found if one["spec"]["replicas"]), found[0])
        serving = await self.cluster.get(self.cluster.path("modelservings", names.model_serving(model), WORKLOAD))
        if serving is None:
            raise PermanentError(
                f"neither a Deployment nor a ModelServing has engines of {model}", "deploy the stack first"
            )
        return ServingRole(serving, role)

    async def pods_of(self, engines: Engines) -> list[Object]:
        """The pods of a Deployment or role, those that are ending included."""
        if isinstance(engines, ServingRole):
            return await self.cluster.pods(engines.selector)
        return await self.cluster.pods(engines["spec"]["selector"]["matchLabels"])

    async def scale(self, engines: Engines, replicas: int) -> None:
        """Set the number of pods (of a role: in each group) and wait until so many are Ready and no other is left."""
        if isinstance(engines, ServingRole):
            await self._change(engines, engines.scaled(replicas))
            return
        path = self.cluster.path("deployments", _name(engines), "apps/v1")
        await self._write("PATCH", f"{path}/scale", {"spec": {"replicas": replicas}})
        await self._until(lambda: self._settled(engines, replicas), f"{replicas} pods of {_name(engines)}")

    async def restart(self, engines: Engines) -> None:
        """Roll every pod, and wait until the last old one is gone and all new ones are Ready."""
        old = {pod["metadata"]["uid"] for pod in await self.pods_of(engines)}
        stamp = {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).isoformat()}
        if isinstance(engines, ServingRole):
            await self._change(engines, engines.restarted(stamp), old)
            return
        deployment = engines
        body = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
        await self._write("PATCH", self.cluster.path("deployments", _name(deployment), "apps/v1"), body)

        async def rolled() -> bool:
            left = {pod["metadata"]["uid"] for pod in await self.pods_of(deployment)}
            return not left & old and await self._settled(deployment, deployment["spec"]["replicas"])

        await self._until(rolled, f"the rollout of {_name(deployment)}")

    async def kill(self, pods: Iterable[Object]) -> None:
        """Delete pods without grace, and wait until their Deployment has others that are Ready."""
        for pod in pods:
            await self._write("DELETE", self._pod(pod), {"gracePeriodSeconds": 0})
            await self._replaced(pod)

    async def evict(self, pods: Iterable[Object]) -> None:
        """Evict pods one after the other, as a node drain does: a disruption budget may make it wait."""
        for pod in pods:
            this = {"preconditions": {"uid": pod["metadata"]["uid"]}}
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": _name(pod)},
                "deleteOptions": this,
            }

            async def evicted(pod: Object = pod, body: dict[str, Any] = body) -> bool:
                reply = await self.cluster.call("POST", f"{self._pod(pod)}/eviction", body=body)
                if reply.status not in (200, 201, *GONE, 429):
                    raise _refused(reply, f"the eviction of {_name(pod)}")
                return reply.status != 429

            await self._until(evicted, f"the eviction of {_name(pod)}")
            await self._replaced(pod)

    async def crash(self, pod: Object) -> None:
        """Kill every process of the engine but the first, which then ends; wait until the container is Ready again.

        Process 1 of a container can't be killed from inside, and deleting a pod is no crash: the kubelet honours its grace.
        """
        before, uid = _restarts(pod), pod["metadata"]["uid"]
        handle = await Pod(pod, api=self.cluster.api)
        try:
            await handle.exec(["/bin/sh", "-c", "kill -9 -1"], container="engine", check=False)
        except Exception as error:  # kr8s lets the errors of its websocket library through
            reason = f"{type(error).__name__} {error}".strip()
            raise PermanentError(f"exec into {_name(pod)} failed: {reason}", "grant create on pods/exec") from None

        async def back() -> bool:
            now = await self.cluster.get(self._pod(pod))
            if now is None or not ready(now):
                return False
            return _restarts(now) > before or now["metadata"]["uid"] != uid  # Kthena makes the pod anew

        await self._until(back, f"the restart of {_name(pod)}")
        if name := _serving(pod):
            await self._until(lambda: self._whole(name), f"all of {name} being available")

    async def _replaced(self, pod: Object) -> None:
        """Wait until a pod is gone and its owner is whole again."""
        if name := _serving(pod):
            await self._until(lambda: self._whole(name, {pod["metadata"]["uid"]}), f"the replacement of {_name(pod)}")
            return
        owner = (await self.deployments({key: pod["metadata"]["labels"][key] for key in _identity(pod)}))[0]

        async def whole() -> bool:
            left = [one["metadata"]["uid"] for one in await self.pods_of(owner)]
            return pod["metadata"]["uid"] not in left and await self._settled(owner, owner["spec"]["replicas"])

        await self._until(whole, f"the replacement of {_name(pod)}")

    async def _deployments(self, selector: dict[str, str]) -> list[Object]:
        every = await self.cluster.items(self.cluster.path("deployments", group="apps/v1"))
        return [one for one in every if selector.items() <= one["spec"]["template"]["metadata"]["labels"].items()]

    async def _change(self, role: ServingRole, patch: Patch, old: Set[str] = frozenset()) -> None:
        await self._write("PATCH", self.cluster.path("modelservings", role.name, WORKLOAD), patch)
        await self._until(lambda: self._whole(role.name, old), f"all of {role.name} being available")

    async def _whole(self, name: str, old: Set[str] = frozenset()) -> bool:
        """A ModelServing of which none of the old pods is left."""
        serving = await self.cluster.get(self.cluster.path("modelservings", name, WORKLOAD))
        pods = await self.cluster.pods({SERVING_LABEL: name})
        return serving is not None and whole(serving, pods) and not old & {pod["metadata"]["uid"] for pod in pods}

    async def _settled(self, deployment: Object, replicas: int) -> bool:
        pods = await self.pods_of(deployment)
        return len(pods) == replicas and all(ready(pod) for pod in pods)

    async def _write(self, method: str, path: str, body: Any) -> None:
        patch = JSON_PATCH if isinstance(body, list) else MERGE
        kind = patch if method == "PATCH" else "application/json"
        params = FIELD_MANAGER if method == "PATCH" else None
        reply = await self.cluster.call(method, path, params=params, body=body, kind=kind)
        if reply.status not in (200, 201, 202):
            raise _refused(reply, f"{method} {path}")

    async def _until(self, done: Callable[[], Awaitable[bool]], what: str) -> None:
        ends = time.monotonic() + self._patience
        while time.monotonic() < ends:
            try:
                if await done():
                    return
            except TemporaryError:
                pass  # an API server that restarts is part of some drills
            await asyncio.sleep(self._pause)
        raise PermanentError(f"{what} did not end within {self._patience:g} s", "run python -m smoke doctor")

    def _pod(self, pod: Object) -> str:
        return self.cluster.path("pods", _name(pod))


def _name(thing: Object) -> str:
    return thing["metadata"]["name"]


def _serving(pod: Object) -> str | None:
    """The ModelServing that a pod is of."""
    return pod["metadata"]["labels"].get(SERVING_LABEL)


def _identity(pod: Object) -> list[str]:
    """The labels by which a pod's Deployment is found: all but the ones that the controller or an activation sets."""
    changing = {"pod-template-hash", labels.ROUTED, "warm", "ready"}
    return [key for key in pod["metadata"]["labels"] if key not in changing]


def _restarts(pod: Object) -> int:
    return sum(one.get("restartCount", 0) for one in pod.get("status", {}).get("containerStatuses", ()))


def _refused(reply: Reply, what: str) -> SmokeError:
    return PermanentError(f"{what} was refused with {reply.status}", "grant the drill's rights (docs/drills.md)")
