"""The drills."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from rules import labels, names
from settings.paths import state_dir
from smoke.cluster import ready
from smoke.drills import needs
from smoke.drills.drill import Drill, Ground
from smoke.drills.needs import roles
from smoke.drills.serving import ServingRole
from smoke.errors import PermanentError
from smoke.keys import smoke_key

ROOT: Final = Path(__file__).parents[2]
OUTAGE_SECONDS: Final = 30.0
API_OUTAGE_SECONDS: Final = 5.0
KILLS: Final = 20
FIRST_KILL_SECONDS: Final = 1.0
KILL_STEP_SECONDS: Final = 0.7
HARMLESS: Final = ("PodDisruptionBudget", "NetworkPolicy")


def first_role(ground: Ground) -> str:
    """The role that a request comes to first."""
    return roles(ground)[0]


async def scale_down(ground: Ground) -> None:
    """One engine fewer, and back."""
    engines = await ground.hands.engines(ground.model, first_role(ground))
    replicas = engines.replicas if isinstance(engines, ServingRole) else engines["spec"]["replicas"]
    await ground.hands.scale(engines, replicas - 1)
    await ground.hands.scale(engines, replicas)


async def roll_decode(ground: Ground) -> None:
    """Every engine that writes answers is replaced."""
    await ground.hands.restart(await ground.hands.engines(ground.model, roles(ground)[-1]))


async def roll_prefill(ground: Ground) -> None:
    """Every engine that computes prompts is replaced."""
    await ground.hands.restart(await ground.hands.engines(ground.model, first_role(ground)))


async def restart_router(ground: Ground) -> None:
    """Every router of the model is replaced."""
    mine = {"app.kubernetes.io/component": "router", labels.MODEL: names.slug(ground.model)}
    for deployment in await ground.hands.deployments(mine):
        await ground.hands.restart(deployment)


async def restart_gateway(ground: Ground) -> None:
    """Every Envoy is replaced."""
    for deployment in await ground.hands.deployments({"app.kubernetes.io/component": names.GATEWAY}):
        await ground.hands.restart(deployment)


async def rotate_key(ground: Ground) -> None:
    """The key that the load uses is rotated; the old value keeps working through the overlap."""
    key = smoke_key(ground.live.settings)
    await _run(sys.executable, "-m", "rotation", "--stack", ground.live.name, "--id", key.id)


async def kill_master(ground: Ground) -> None:
    """The Mooncake master is gone at once; it is a cache, so only time may be lost."""
    masters = await ground.hands.cluster.pods({"app.kubernetes.io/name": names.KV_MASTER})
    await ground.hands.kill(masters)


async def kill_engine(ground: Ground) -> None:
    """An engine that computes prompts crashes in the middle of its work."""
    deployment = await ground.hands.engines(ground.model, first_role(ground))
    pods = [pod for pod in await ground.hands.pods_of(deployment) if ready(pod)]
    await ground.hands.crash(pods[0])


async def drain_engines(ground: Ground) -> None:
    """All engines of the model are evicted one after the other, as when their node is drained."""
    engines = [await ground.hands.engines(ground.model, role) for role in roles(ground)]
    await ground.hands.evict([pod for each in engines for pod in await ground.hands.pods_of(each)])


async def metrics_outage(ground: Ground) -> None:
    """The metrics API is away for half a minute: scalers hold what they have."""
    deployment = (await ground.hands.deployments({"app.kubernetes.io/component": "capacity"}))[0]
    await ground.hands.scale(deployment, 0)
    await asyncio.sleep(OUTAGE_SECONDS)
    await ground.hands.scale(deployment, deployment["spec"]["replicas"])


async def restart_api_server(ground: Ground) -> None:
    """The API server is killed and comes back: routers, kubelet and controllers go on with what they know."""
    record = json.loads((state_dir() / "processes" / "kube-apiserver.json").read_text())
    os.kill(record["pid"], signal.SIGKILL)
    await asyncio.sleep(API_OUTAGE_SECONDS)
    await _run(sys.executable, "-m", "local", "up")


async def kill_deployment(ground: Ground) -> None:
    """`up` is killed at twenty points and repeated; nothing is orphaned, no state is lost, and the last run ends well.

    Each of these runs replaces objects that carry no request, so that there is something to interrupt.
    """
    stack = ground.live.name
    before = await _objects(ground)
    pulumi = (sys.executable, "-m", "local", "pulumi", "-s", stack)
    up = (*pulumi, "up", "--yes", "--skip-preview", "--non-interactive")
    replaced = [f"--replace={urn}" for urn in replaceable(json.loads(await _run(*pulumi, "stack", "export")))]
    for kill in range(KILLS):
        process = await asyncio.create_subprocess_exec(
            *up,
            *replaced,
            cwd=ROOT,
            start_new_session=True,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await asyncio.sleep(FIRST_KILL_SECONDS + kill * KILL_STEP_SECONDS)
        kill_session(process.pid)
        await process.wait()
    await _run(*up)
    await _run(*up, "--expect-no-changes")
    if (after := await _objects(ground)) != before:
        raise PermanentError(f"objects differ after the kills: {sorted(before ^ after)}", f"pulumi refresh -s {stack}")


def kill_session(leader: int) -> None:
    """Kill every process of a session; Pulumi's plugins lead groups of their own and would outlive it."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def replaceable(state: dict[str, Any]) -> list[str]:
    """URNs of a stack's objects that can go and come back while requests are served."""
    return [one["urn"] for one in state["deployment"]["resources"] if one["type"].rpartition(":")[2] in HARMLESS]


async def _objects(ground: Ground) -> set[str]:
    cluster = ground.hands.cluster
    kinds = (("deployments", "apps/v1"), ("services", ""), ("configmaps", ""), ("secrets", ""), ("serviceaccounts", ""))
    own = {"app.kubernetes.io/part-of": "moonstack"}
    return {
        f"{kind}/{one['metadata']['name']}"
        for kind, group in kinds
        for one in await cluster.items(cluster.path(kind, group=group), own)
        if one["metadata"]["name"] not in (names.SMOKE_LATEST, names.SMOKE_GREEN)
    }


async def _run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    if process.returncode:
        tail = " ".join((output + errors).decode(errors="replace").split())[-400:]
        raise PermanentError(f"{' '.join(command[1:4])} ended with {process.returncode}: {tail}", "run it by itself")
    return output.decode()


_DRAIN: Final = "preStop and terminationGracePeriodSeconds from longestRequestSeconds, --shutdown-timeout, kv_load_failure_policy recompute"

CATALOGUE: Final = (
    Drill(name="scale-down", what="one prefill engine is taken away", carried_by=_DRAIN, act=scale_down, needs=needs.one_to_spare),
    Drill(name="roll-decode", what="every decode engine is replaced", carried_by=f"{_DRAIN}, maxUnavailable 0", act=roll_decode,
          needs=needs.another_group),
    Drill(name="roll-prefill", what="every prefill engine is replaced", carried_by=f"{_DRAIN}, maxUnavailable 0", act=roll_prefill,
          needs=needs.another_group),
    Drill(name="restart-router", what="every router is replaced", act=restart_router,
          carried_by="router.replicas of at least 2, readiness on /readiness, the gateway's retries before the first byte"),
    Drill(name="restart-gateway", what="every gateway pod is replaced", act=restart_gateway,
          carried_by="the gateway's drain script in preStop, its grace period, maxUnavailable 0"),
    Drill(name="rotate-key", what="the key in use is rotated", act=rotate_key,
          carried_by="both values accepted during the overlap, keys read from a mounted directory without a restart"),
    Drill(name="kill-master", what="the Mooncake master is killed", act=kill_master, needs=needs.store,
          carried_by="kv_load_failure_policy recompute: the store is a cache"),
    Drill(name="kill-engine", what="a prefill engine crashes", act=kill_engine, needs=needs.another_prefill, broken_allowed=True,
          carried_by="the gateway's retries before the first byte, kv_load_failure_policy recompute"),
    Drill(name="drain-engines", what="engines are evicted as in a node drain", act=drain_engines, needs=needs.another_of_each_role,
          carried_by=f"{_DRAIN}, PodDisruptionBudget of each role"),
    Drill(name="metrics-outage", what="the metrics API is away", act=metrics_outage, needs=needs.scalers,
          carried_by="the HPA holds its replicas without metrics; floors by minReplicas"),
    Drill(name="restart-api-server", what="the API server is killed and started again", act=restart_api_server, local_only=True,
          carried_by="the data path needs no API server: routers and gateway go on with what they know"),
    Drill(name="kill-deployment", what="pulumi up is killed at 20 points", act=kill_deployment, local_only=True,
          carried_by="server-side apply with fixed names, a lock that is cleared for dead local runs"),
)  # fmt: skip
