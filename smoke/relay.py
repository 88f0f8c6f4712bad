"""The way `job`: a short-lived pod in the stack's namespace passes our bytes to the gateway's Service.

So requests take the path of a client inside the cluster (Service, NetworkPolicy, TLS name), while probes and keys stay here.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kr8s.asyncio.objects import Pod

from rules import names
from settings.settings import Settings
from smoke.cluster import Cluster, ready
from smoke.jobs import image_of, job, running
from smoke.prompts import nonce

PORT: Final = 8443
_SCRIPT: Final = Path(__file__).with_name("relay_pod.py")


@asynccontextmanager
async def relayed(settings: Settings, cluster: Cluster, stack: str) -> AsyncIterator[int]:
    """A local port whose connections are made from inside the cluster. Raises SmokeError."""
    async with running(cluster, relay_job(settings, image_of(settings), stack), ready) as pod:
        handle = await Pod(pod, api=cluster.api)
        async with handle.portforward(remote_port=PORT, local_port="auto") as port:
            yield port


def relay_job(settings: Settings, image: str, stack: str) -> dict[str, Any]:
    """The Job that relays to the gateway's Service."""
    gateway = names.cluster_local(names.GATEWAY, settings.cluster.namespace)
    command = ["python3", "-c", _SCRIPT.read_text(), str(PORT), gateway, str(settings.gateway.http_port)]
    return job(f"smoke-{nonce()}", image, command, stack, PORT)
