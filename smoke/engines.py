"""The engines behind the gateway, seen through the API server: who is there, their counters, and one of them asked directly."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from rules import labels, names, ports
from smoke.answers import Completion, parse
from smoke.cluster import Cluster, ready
from smoke.errors import TemporaryError, from_status
from smoke.exposition import samples
from smoke.sets import of_serving_set

EXTERNAL_HITS: Final = "vllm:external_prefix_cache_hits_total"
EXTERNAL_QUERIES: Final = "vllm:external_prefix_cache_queries_total"
LOCAL_HITS: Final = "vllm:prefix_cache_hits_total"
QUERIES: Final = "vllm:prefix_cache_queries_total"


@dataclass(frozen=True, slots=True)
class Engine:
    """One Ready engine pod."""

    pod: str
    role: str


Counters = dict[str, dict[str, float]]
"""Pod → sample name → sum over its label sets."""


class Engines:
    """Reads engines of the stack's models."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def of(self, model: str, role: str | None = None) -> list[Engine]:
        """The Ready, routed engine pods of a model, by name; while two sets of it stand side by side, those of the one that serves."""
        selector = {labels.MODEL: names.slug(model), labels.ROUTED: "true"} | ({labels.ROLE: role} if role else {})
        found = [pod for pod in await self.cluster.pods(selector) if ready(pod)]
        pods = await of_serving_set(self.cluster, model, found)
        return sorted(
            (Engine(pod["metadata"]["name"], pod["metadata"]["labels"].get(labels.ROLE, "")) for pod in pods),
            key=lambda engine: engine.pod,
        )

    async def counters(self, engines: Iterable[Engine]) -> Counters:
        """The counters of each engine, at this moment. Raises TemporaryError for one that does not answer."""
        return {engine.pod: await self._scrape(engine.pod) for engine in engines}

    async def chat(self, engine: Engine, body: dict[str, Any]) -> Completion:
        """One engine's own answer, past gateway and router. Raises SmokeError."""
        reply = await self.cluster.through_pod(engine.pod, ports.ENGINE, "/v1/chat/completions", body=body)
        if reply.status != 200:
            raise from_status(reply.status, "", f"engine {engine.pod}")
        return parse(reply.text, Completion, f"engine {engine.pod}")

    async def _scrape(self, pod: str) -> dict[str, float]:
        reply = await self.cluster.through_pod(pod, ports.ENGINE, "/metrics")
        if reply.status != 200:
            raise TemporaryError(
                f"engine {pod} gives no metrics: status {reply.status}",
                "the API server must reach pods on port 8000, and the reader needs get on pods/proxy",
            )
        return sums(reply.text)


def sums(text: str) -> dict[str, float]:
    """Sample name → sum over label sets, of a page in Prometheus text format."""
    totals: dict[str, float] = {}
    for sample in samples(text):
        totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    return totals


def rise(before: Counters, after: Counters, name: str, pods: Iterable[str]) -> float:
    """By how much a counter grew over some pods; a restarted engine counts from zero."""
    total = 0.0
    for pod in pods:
        then, now = before.get(pod, {}).get(name, 0.0), after.get(pod, {}).get(name, 0.0)
        total += now - then if now >= then else now
    return total
