"""The network boundary is in force: a pod of smoke's own reaches the gateway, and nothing behind it."""

from pathlib import Path
from typing import Final

from rules import names, ports
from settings.settings import Settings
from smoke.cluster import Cluster, Object, ready
from smoke.errors import TemporaryError
from smoke.jobs import image_of, job, running
from smoke.probe import LiveStack, Outcome, Probe, failed, passed, skipped
from smoke.prompts import nonce

OPEN: Final = "gateway"
_SCRIPT: Final = Path(__file__).parents[1] / "reach_pod.py"


def probes(settings: Settings) -> list[Probe]:
    """One where policies are declared. It makes a Job, so it is not among the safe ones."""
    if not settings.network.enabled:
        return []
    proves = "a pod that may reach the gateway alone reaches no engine, router or store"
    return [Probe(name="boundary", proves=proves, check=_check, kind="disruptive")]


async def _check(stack: LiveStack) -> Outcome:
    if stack.engines is None:
        return skipped("this can only be seen through the cluster", "give smoke a kubeconfig")
    cluster = stack.engines.cluster
    targets = await addresses(stack.settings, cluster)
    command = ["python3", "-c", _SCRIPT.read_text(), *(f"{name}={address}" for name, address in targets.items())]
    made = job(f"smoke-{nonce()}", image_of(stack.settings), command, stack.name)
    async with running(cluster, made, _ended) as pod:
        log = await cluster.call("GET", f"{cluster.path('pods', pod['metadata']['name'])}/log")
    if log.status != 200:
        raise TemporaryError(f"the Job's answer can't be read: status {log.status}", "grant get on pods/log")
    return judge(log.json(), stack.settings.network.enforced)


async def addresses(settings: Settings, cluster: Cluster) -> dict[str, str]:
    """The gateway's Service, and one pod of each part behind it that is there."""
    gateway = names.cluster_local(names.GATEWAY, settings.cluster.namespace)
    found = {OPEN: f"{gateway}:{settings.gateway.http_port}"}
    parts = (("engine", ports.ENGINE), ("router", ports.ROUTER), ("kv-store", ports.KV_MASTER_RPC))
    for part, port in parts:
        pods = [pod for pod in await cluster.pods({"app.kubernetes.io/component": part}) if ready(pod)]
        if pods:
            found[part] = f"{pods[0]['status']['podIP']}:{port}"
    return found


def judge(reached: dict[str, bool], enforced: bool) -> Outcome:
    """Pass when the gateway was reached, and nothing else.

    A pod that reaches everything shows a cluster that enforces no policy; that is no failure where `network.enforced` is
    false. One that reaches some parts shows a hole in the policies, everywhere a failure.
    """
    unit = "parts reached behind the gateway"
    behind = [part for part in reached if part != OPEN]
    inside = [part for part in behind if reached[part]]
    if not reached.get(OPEN):
        return failed("the gateway can't be reached from inside", "see its Service and NetworkPolicy: run pulumi up")
    if not behind:
        return skipped("there is no engine, router or store to keep away from", "deploy a model")
    if inside == behind and not enforced:
        return skipped(
            f"this cluster does not enforce NetworkPolicies: a pod reached {', '.join(inside)}; network.enforced is false",
            "install a network plugin that enforces them, then set moonstack:network.enforced to true",
        )
    if inside:
        return failed(
            f"a pod that may reach the gateway alone reached {', '.join(inside)}",
            "the cluster does not enforce NetworkPolicies, or they are missing: see python -m smoke preflight",
            len(inside),
            unit,
            0,
        )
    return passed(0, unit, 0)


def _ended(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")
