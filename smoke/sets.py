"""Old and new sets of a model that changes as a whole: which one serves, and when nobody asks the other any more."""

import asyncio
from collections.abc import Iterable
from typing import Final

from rules import labels, names, timing
from settings.settings import Settings
from smoke.cluster import Cluster, Object, ready

FORGOTTEN_SECONDS: Final = float(timing.NAME_SECONDS)


async def of_serving_set(cluster: Cluster, model: str, pods: Iterable[Object]) -> list[Object]:
    """Those pods of a model that belong to the set which its routers' Service selects; all of them while there is one set.

    Raises SmokeError.
    """
    found = list(pods)
    if len({_set(pod) for pod in found}) < 2:
        return found
    service = await cluster.get(cluster.path("services", names.router_service(model)))
    serving = ((service or {}).get("spec", {}).get("selector") or {}).get(labels.SET, "")
    return [pod for pod in found if _set(pod) == serving]


async def leave_old_sets(settings: Settings, cluster: Cluster, seconds: float = FORGOTTEN_SECONDS) -> bool:
    """While routers of two sets of a model are Ready, wait until gateways have forgotten the old ones; returns whether it waited.

    Raises SmokeError.
    """
    whole = {names.slug(model.name) for model in settings.models if model.rollout == "blueGreen"}
    if not whole:
        return False
    routers = [pod for pod in await cluster.pods({"app.kubernetes.io/component": "router"}) if ready(pod)]
    sets = {(pod["metadata"]["labels"].get(labels.MODEL), _set(pod)) for pod in routers}
    if all(sum(model == slug for model, _ in sets) < 2 for slug in whole):
        return False
    await asyncio.sleep(seconds)
    return True


def _set(pod: Object) -> str:
    return pod["metadata"].get("labels", {}).get(labels.SET, "")
