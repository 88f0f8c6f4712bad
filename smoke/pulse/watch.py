"""What engines, scalers and pods do while the pulse runs, once every two seconds."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from rules import labels, names
from rules.warm_pool import RESTING
from smoke.cluster import Cluster, ready
from smoke.engines import Engines
from smoke.errors import SmokeError

PERIOD_SECONDS: Final = 2.0
WAITING: Final = "vllm:num_requests_waiting"
RUNNING: Final = "vllm:num_requests_running"
KV_USAGE: Final = "vllm:kv_cache_usage_perc"


@dataclass(frozen=True, slots=True)
class Moment:
    """The stack at one time, in seconds since the load's start; queue and KV use are the worst engine's."""

    at: float
    queue: float
    kv_usage: float
    replicas: int
    """Ready, routed engine pods."""
    desired: int
    """What the scalers ask for; the replicas where there is no scaler."""
    warm: int
    busy_pods: frozenset[str] = field(default_factory=frozenset)
    """Pods with a request running, waiting or done."""


class Watch:
    """Looks at one model's engines until it is stopped."""

    def __init__(self, engines: Engines, model: str, clock: Callable[[], float]) -> None:
        self._engines = engines
        self._model = model
        self._clock = clock
        self.moments: list[Moment] = []

    async def run(self) -> None:
        """Take a moment every two seconds; a moment that can't be taken is left out. Ends by cancellation."""
        while True:
            started = time.monotonic()
            with suppress(SmokeError):
                self.moments.append(await self.look())
            await asyncio.sleep(max(0.0, PERIOD_SECONDS - (time.monotonic() - started)))

    async def look(self) -> Moment:
        """The stack now. Raises SmokeError."""
        at = self._clock()
        engines = await self._engines.of(self._model)
        counters = await self._engines.counters(engines)
        hpas = await scalers(self._engines.cluster, self._model)
        return Moment(
            at=at,
            queue=max((c.get(WAITING, 0.0) for c in counters.values()), default=0.0),
            kv_usage=max((c.get(KV_USAGE, 0.0) for c in counters.values()), default=0.0),
            replicas=len(engines),
            desired=sum(hpa.get("status", {}).get("desiredReplicas", 0) for hpa in hpas) or len(engines),
            warm=len(await self._warm()),
            busy_pods=frozenset(pod for pod, counter in counters.items() if _served(counter)),
        )

    async def _warm(self) -> list[Any]:
        selector = {labels.MODEL: names.slug(self._model), **RESTING}
        return [pod for pod in await self._engines.cluster.pods(selector) if ready(pod)]


async def scalers(cluster: Cluster, model: str) -> list[dict[str, Any]]:
    """The HPAs of a model's engines."""
    every = await cluster.items(cluster.path("horizontalpodautoscalers", group="autoscaling/v2"))
    return [hpa for hpa in every if hpa["spec"]["scaleTargetRef"]["name"].startswith(f"{names.slug(model)}-")]


def _served(counter: dict[str, float]) -> bool:
    return counter.get(RUNNING, 0) + counter.get(WAITING, 0) + counter.get("vllm:request_success_total", 0) > 0
