"""Whether what is deployed is what the stack file says: a drill takes from the one, and judges by the other."""

from collections.abc import Iterator, Sequence
from typing import Any

from rules import kthena, labels, names, timing
from settings.models import ModelSettings
from settings.settings import Settings
from smoke.answers import ModelList
from smoke.client import MODELS, GatewayClient
from smoke.cluster import Cluster, Object
from smoke.deployed import other_content
from smoke.errors import PermanentError, from_status
from smoke.probes.routing import declared_names


async def refuse_other_than_declared(settings: Settings, stack: str, gateway: GatewayClient, cluster: Cluster) -> None:
    """Raises PermanentError that names each difference; nothing has been taken away yet."""
    if found := [
        *await _names(settings, gateway),
        *await _objects(settings, cluster),
        *await _content(settings, cluster),
    ]:
        raise PermanentError(
            f"what is deployed on {stack} is not what Pulumi.{stack}.yaml says: {'; '.join(found)}",
            f"pulumi up -s {stack} first, or check out the stack file that was deployed",
        )


async def _names(settings: Settings, gateway: GatewayClient) -> list[str]:
    answer = await gateway.send("GET", MODELS)
    if answer.status != 200:
        raise from_status(answer.status, answer.message(), MODELS)
    listed = {card.id for card in answer.parse(ModelList, MODELS).data}
    declared = declared_names(settings)
    return [
        *(f"the gateway does not list {name}" for name in sorted(declared - listed)),
        *(f"the gateway lists {name}" for name in sorted(listed - declared)),
    ]


async def _objects(settings: Settings, cluster: Cluster) -> list[str]:
    deployments = await cluster.items(cluster.path("deployments", group="apps/v1"))
    found = [line for model in settings.models if model.backend == "native" for line in _engines(model, deployments)]
    for model in settings.models:
        name = names.model_serving(model.name)
        if model.backend == "kthena" and not await cluster.get(cluster.path("modelservings", name, kthena.WORKLOAD)):
            found.append(f"there is no ModelServing {name}")
    masters = [one for one in deployments if _label(one, "app.kubernetes.io/name").startswith(names.KV_MASTER)]
    shared = settings.kv_store.enabled and any(model.connector != "none" for model in settings.models)
    if shared and not masters:
        found.append("kvStore is on, and there is no Mooncake master")
    if masters and not settings.kv_store.enabled:
        found.append("kvStore is off, and there is a Mooncake master")
    return found


def _engines(model: ModelSettings, deployments: Sequence[Object]) -> Iterator[str]:
    """Roles, and the grace that carries the longest request."""
    mine = [
        one for one in deployments if _label(one, labels.MODEL) == names.slug(model.name) and _label(one, labels.ROLE)
    ]
    there, declared = {_label(one, labels.ROLE) for one in mine}, set(model.roles())
    if there != declared:
        yield f"{model.name} has {_list(there)} engines, not {_list(declared)}"
    wanted = timing.grace_seconds(model.longest_request_seconds)
    given = {one["spec"]["template"]["spec"].get("terminationGracePeriodSeconds") for one in mine}
    if given - {wanted}:
        yield f"engines of {model.name} have {_list(given)} s of grace, longestRequestSeconds wants {wanted}"


async def _content(settings: Settings, cluster: Cluster) -> list[str]:
    return ["images, model revisions or engine settings are others"] if await other_content(settings, cluster) else []


def _label(deployment: Object, key: str) -> str:
    return deployment["spec"]["template"]["metadata"].get("labels", {}).get(key, "")


def _list(values: set[Any]) -> str:
    return ", ".join(sorted(map(str, values))) or "no"
