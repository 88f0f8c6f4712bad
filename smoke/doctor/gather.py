"""Gathers the facts; what can't be read is noted, and never stops the rest."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, TypeVar

from prometheus_client.samples import Sample

from rules import labels, names, ports
from rules.kthena import WORKLOAD
from settings.settings import Settings
from smoke import kthena
from smoke.answers import Completion, ModelList
from smoke.client import CHAT, MODELS, GatewayClient, chat_body
from smoke.cluster import Cluster, ready
from smoke.doctor.facts import Door, Facts, Object, label
from smoke.engines import Counters, sums
from smoke.errors import SmokeError, TemporaryError
from smoke.exposition import samples
from smoke.keys import read_smoke_key
from smoke.routers import SELECTOR, Workers, addresses
from smoke.ways import connection, open_way

T = TypeVar("T")


class Gatherer:
    """One look at one stack."""

    def __init__(self, settings: Settings, cluster: Cluster, stack: str) -> None:
        self._stack = stack
        self._settings = settings
        self._cluster = cluster
        self._blind: list[str] = []

    async def facts(self) -> Facts:
        """Everything that can be read, within about half a minute."""
        cluster = self._cluster
        pods, deployments, hpas, events, nodes, services = await asyncio.gather(
            self._list("pods", cluster.path("pods"), "Pod"),
            self._list("deployments", cluster.path("deployments", group="apps/v1"), "Deployment"),
            self._list("scalers", cluster.path("horizontalpodautoscalers", group="autoscaling/v2"), "HPA"),
            self._list("events", cluster.path("events"), "Event"),
            self._list("nodes", "/api/v1/nodes", "Node"),
            self._list("aggregated APIs", "/apis/apiregistration.k8s.io/v1/apiservices", "APIService"),
        )
        of_kthena = await self._try("Kthena's objects", self._kthena(), ())
        root_ca = await self._try("the root CA", cluster.get(cluster.path("configmaps", "kube-root-ca.crt")), None)
        door = await self._door()
        counters, workers, gateway, store = await asyncio.gather(
            self._counters(pods), self._workers(pods), self._gateway(pods), self._store(pods)
        )
        return Facts(
            settings=self._settings, now=datetime.now(UTC), pods=pods, deployments=deployments, hpas=hpas, kthena=of_kthena,
            events=events, nodes=nodes, api_services=services, root_ca=root_ca, counters=counters, workers=workers, gateway=gateway,
            store=store, door=door, blind=tuple(self._blind),
        )  # fmt: skip

    async def _try(self, what: str, reading: Awaitable[T], otherwise: T) -> T:
        try:
            return await reading
        except SmokeError:
            self._blind.append(what)
            return otherwise

    async def _list(self, what: str, path: str, kind: str) -> tuple[Object, ...]:
        """Items of a list carry no kind of their own."""
        items = await self._try(what, self._cluster.items(path), [])
        return tuple({**item, "kind": kind} for item in items)

    async def _kthena(self) -> tuple[Object, ...]:
        """Of the kinds that the settings declare. Raises SmokeError."""
        wanted = {"ModelServing": kthena.served(self._settings), **dict([kthena.scalers(self._settings)])}
        found: list[Object] = []
        for kind in (kind for kind, declared in wanted.items() if declared):
            items = await self._cluster.items(self._cluster.path(kthena.RESOURCES[kind], group=WORKLOAD))
            found += [{**item, "kind": kind} for item in items]
        return tuple(found)

    async def _page(self, pod: Object, port: int, path: str) -> str:
        name = pod["metadata"]["name"]

        async def read() -> str:
            reply = await self._cluster.through_pod(name, port, path)
            if reply.status != 200:
                raise TemporaryError(f"status {reply.status}", "run again")
            return reply.text

        return await self._try(f"{path} of pod/{name}", read(), "")

    async def _counters(self, pods: tuple[Object, ...]) -> Counters:
        engines = [pod for pod in pods if label(pod, labels.ROLE) and ready(pod)]
        pages = await asyncio.gather(*(self._page(pod, ports.ENGINE, "/metrics") for pod in engines))
        return {pod["metadata"]["name"]: sums(page) for pod, page in zip(engines, pages, strict=True) if page}

    async def _workers(self, pods: tuple[Object, ...]) -> Workers:
        routers = [pod for pod in pods if SELECTOR.items() <= pod["metadata"].get("labels", {}).items() and ready(pod)]
        pages = await asyncio.gather(*(self._page(pod, ports.ROUTER, "/workers") for pod in routers))
        return {pod["metadata"]["name"]: addresses(page) for pod, page in zip(routers, pages, strict=True) if page}

    async def _gateway(self, pods: tuple[Object, ...]) -> tuple[Sample, ...]:
        gateways = [pod for pod in pods if label(pod, "app.kubernetes.io/component") == names.GATEWAY and ready(pod)]
        pages = await asyncio.gather(*(self._page(pod, ports.GATEWAY_METRICS, "/stats/prometheus") for pod in gateways))
        return tuple(sample for page in pages for sample in samples(page))

    async def _store(self, pods: tuple[Object, ...]) -> dict[str, float]:
        masters = [pod for pod in pods if label(pod, "app.kubernetes.io/name") == names.KV_MASTER and ready(pod)]
        page = await self._page(masters[0], ports.KV_MASTER_METRICS, "/metrics") if masters else ""
        return sums(page)

    async def _door(self) -> Door:
        try:
            key = await read_smoke_key(self._settings, self._cluster)
            async with (
                open_way(self._settings, self._cluster, self._stack) as address,
                connection(self._settings, address) as http,
            ):
                return await knock(GatewayClient(http, key), self._settings)
        except SmokeError as error:
            return Door(error=error)


async def knock(gateway: GatewayClient, settings: Settings) -> Door:
    """The list of models, and one token of the first model. Raises SmokeError when no answer comes."""
    listed = await gateway.send("GET", MODELS)
    if listed.status != 200:
        return Door(status=listed.status)
    try:
        models = frozenset(card.id for card in listed.parse(ModelList, MODELS).data)
        if not settings.models:
            return Door(status=200, models=models)
        body: dict[str, Any] = chat_body(settings.models[0].name, "Say a word.", max_tokens=1)
        answer = await gateway.send("POST", CHAT, json=body)
        if answer.status == 200:
            answer.parse(Completion, "a chat")
    except TemporaryError:
        raise
    except SmokeError as error:
        return Door(status=200, error=error, parsed=False)
    return Door(status=answer.status, models=models)
