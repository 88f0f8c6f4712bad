"""What the cluster itself says: routers know the engines, scalers are active and have their metrics, warm pods wait."""

from collections.abc import Awaitable, Callable
from typing import Final

from rules import ports
from settings.settings import Settings
from smoke.cluster import Cluster, ready
from smoke.errors import TemporaryError
from smoke.probe import LiveStack, Outcome, Probe, failed, passed, skipped
from smoke.probes import scaling
from smoke.probes.scaling import active, metrics
from smoke.routers import SELECTOR, addresses, differences

WARM: Final = {"moonstack.dev/warm-pool": "true"}


def probes(settings: Settings) -> list[Probe]:
    """Those that the configuration calls for."""
    found = []
    if any(model.backend == "native" for model in settings.models):
        found.append(
            Probe(name="routers", proves="each router knows exactly the Ready, routed engines", check=_inside(_routers))
        )
    if settings.autoscaling.engines.enabled and settings.models:
        found.append(Probe(name="scalers", proves="every scaler is active", check=_inside(active)))
    if scaling.natively(settings):
        found.append(
            Probe(name="scaler-metrics", proves="every metric that scales has a value a pod", check=_inside(metrics))
        )
    if settings.warm_pool.enabled:
        found.append(Probe(name="warm-pool", proves="warm pods are loaded and wait", check=_inside(_warm)))
    return found


Look = Callable[[LiveStack, Cluster], Awaitable[Outcome]]


def _inside(look: Look) -> Callable[[LiveStack], Awaitable[Outcome]]:
    async def check(stack: LiveStack) -> Outcome:
        if stack.engines is None:
            return skipped("this can only be seen through the cluster", "give smoke a kubeconfig")
        return await look(stack, stack.engines.cluster)

    return check


async def _routers(stack: LiveStack, cluster: Cluster) -> Outcome:
    pods = [pod for pod in await cluster.pods(SELECTOR) if ready(pod)]
    if not pods:
        raise TemporaryError("no router is Ready", "run python -m smoke doctor")
    workers = {}
    for pod in pods:
        name = pod["metadata"]["name"]
        reply = await cluster.through_pod(name, ports.ROUTER, "/workers")
        workers[name] = addresses(reply.text) if reply.status == 200 else frozenset()
    if wrong := differences(stack.settings.models, await cluster.pods({}), workers):
        router, text = next(iter(wrong.items()))
        raise TemporaryError(f"{router} {text}", "restart the router; see docs/runbooks.md, router-stale")
    return passed(len(workers), "routers", len(workers))


async def _warm(stack: LiveStack, cluster: Cluster) -> Outcome:
    every = await cluster.items(cluster.path("deployments", group="apps/v1"))
    warm = [one for one in every if WARM.items() <= one["spec"]["template"]["metadata"]["labels"].items()]
    declared = sum(one["spec"].get("replicas", 0) for one in warm)
    waiting = [pod for pod in await cluster.pods(WARM) if ready(pod)]
    if not warm or len(waiting) < declared:
        return failed(
            f"{len(waiting)} of {declared} warm pods are loaded",
            f"wait for the load, or see kubectl -n {cluster.namespace} get pods -l moonstack.dev/warm-pool=true",
            len(waiting),
            "warm pods",
            declared,
        )
    return passed(len(waiting), "warm pods", declared)
