"""A short-lived pod of smoke's own in the stack's namespace: what it is, how it starts, and that it goes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from rules import flow, labels
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from smoke.cluster import Cluster, Object
from smoke.errors import PermanentError, TemporaryError

LIFETIME_SECONDS: Final = 1800
START_SECONDS: Final = 60
_USER: Final = 65532


def image_of(settings: Settings) -> str:
    """The image that has Python: the capacity controller's. Raises SettingsError where the local images are not built."""
    images = settings.cluster.images
    return images["capacity"] if isinstance(images, dict) else LocalRuntime.load().images["capacity"]


def job(name: str, image: str, command: Sequence[str], stack: str, port: int | None = None) -> dict[str, Any]:
    """The Job: one restricted pod, no retry, no token, gone by itself if we are killed; Ready when `port` listens."""
    own = labels.recommended(name, flow.SMOKE, stack) | {"app.kubernetes.io/managed-by": "smoke"}
    listening = {
        "ports": [{"containerPort": port}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
    }
    container = {
        "name": "smoke",
        "image": image,
        "command": list(command),
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **(listening if port else {}),
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": own},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": LIFETIME_SECONDS,
            "ttlSecondsAfterFinished": 60,
            "template": {"metadata": {"labels": own}, "spec": spec},
        },
    }


@asynccontextmanager
async def running(cluster: Cluster, made: Object, reached: Callable[[Object], bool]) -> AsyncIterator[Object]:
    """The Job's pod once it is as far as `reached` says; the Job is deleted at the end. Raises SmokeError."""
    name, path = made["metadata"]["name"], cluster.path("jobs", group="batch/v1")
    reply = await cluster.call("POST", path, body=made)
    if reply.status != 201:
        raise PermanentError(
            f"the smoke Job was refused with {reply.status}", "grant create and delete on jobs, or use via endpoint"
        )
    try:
        yield await _pod(cluster, name, reached)
    finally:
        await cluster.call(
            "DELETE", f"{path}/{name}", body={"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        )


async def _pod(cluster: Cluster, name: str, reached: Callable[[Object], bool]) -> Object:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        for pod in await cluster.pods({"batch.kubernetes.io/job-name": name}):
            if reached(pod):
                return pod
        await asyncio.sleep(0.5)
    raise TemporaryError(
        f"the pod of Job {name} did not get as far as it should within {START_SECONDS} s",
        "run python -m smoke doctor, or use via endpoint",
    )
