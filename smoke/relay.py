"""The way `job`: a short-lived pod in the stack's namespace passes our bytes to the gateway's Service.

So requests take the path of a client inside the cluster (Service, NetworkPolicy, TLS name), while probes and keys stay here.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kr8s.asyncio.objects import Pod

from rules import flow, labels, names
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from smoke.cluster import Cluster, Object, ready
from smoke.errors import PermanentError, TemporaryError
from smoke.prompts import nonce

PORT: Final = 8443
LIFETIME_SECONDS: Final = 1800
START_SECONDS: Final = 60
_USER: Final = 65532


@asynccontextmanager
async def relayed(settings: Settings, cluster: Cluster, stack: str) -> AsyncIterator[int]:
    """A local port whose connections are made from inside the cluster; the Job is deleted at the end. Raises SmokeError."""
    name = f"smoke-{nonce()}"
    path = cluster.path("jobs", group="batch/v1")
    reply = await cluster.call("POST", path, body=job(name, settings, image_of(settings), stack))
    if reply.status != 201:
        raise PermanentError(
            f"the smoke Job was refused with {reply.status}", "grant create and delete on jobs, or use via endpoint"
        )
    try:
        pod = await _started(cluster, name)
        handle = await Pod(pod, api=cluster.api)
        async with handle.portforward(remote_port=PORT, local_port="auto") as port:
            yield port
    finally:
        await cluster.call(
            "DELETE", f"{path}/{name}", body={"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        )


def image_of(settings: Settings) -> str:
    """The image that has Python: the capacity controller's. Raises SettingsError where the local images are not built."""
    images = settings.cluster.images
    return images["capacity"] if isinstance(images, dict) else LocalRuntime.load().images["capacity"]


def job(name: str, settings: Settings, image: str, stack: str) -> dict[str, Any]:
    """The Job: one pod, no retry, no token, gone by itself if we are killed."""
    gateway = names.cluster_local(names.GATEWAY, settings.cluster.namespace)
    script = Path(__file__).with_name("relay_pod.py").read_text()
    own = labels.recommended(name, flow.SMOKE, stack) | {"app.kubernetes.io/managed-by": "smoke"}
    container = {
        "name": "relay",
        "image": image,
        "command": ["python3", "-c", script, str(PORT), gateway, str(settings.gateway.http_port)],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
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


async def _started(cluster: Cluster, name: str) -> Object:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        for pod in await cluster.pods({"batch.kubernetes.io/job-name": name}):
            if ready(pod):
                return pod
        await asyncio.sleep(0.5)
    raise TemporaryError(
        f"the pod of Job {name} was not Ready within {START_SECONDS} s",
        "run python -m smoke doctor, or use via endpoint",
    )
