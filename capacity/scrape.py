"""Asks every Ready engine and gateway once a second for its metrics; one that hangs holds up nobody else."""

import asyncio
import time

from capacity.exposition import BadSample, gateway_requests, parse
from capacity.fetch import FetchError, Pages
from capacity.pods import Pod, PodBook
from capacity.samples import SampleBook
from capacity.schedule import Schedule
from capacity.telemetry import Telemetry
from rules import ports
from rules.metrics import Engine

SHORTEST_WAIT_SECONDS = 0.02
"""Pods that are due within it are asked together: hundreds of wake-ups a second would cost more than they gain."""
LONGEST_WAIT_SECONDS = 0.1
"""How soon a pod that has become Ready is asked for the first time."""


class Scraper:
    """One request in flight per pod at most; times in seconds."""

    def __init__(
        self,
        pods: PodBook,
        samples: SampleBook,
        telemetry: Telemetry,
        *,
        engine: Engine,
        port: int,
        interval: float,
        timeout: float,
    ) -> None:
        self._pods, self._samples, self._telemetry = pods, samples, telemetry
        self._engine: Engine = engine
        self._port, self._timeout = port, timeout
        self._schedule, self._pages = Schedule(interval), Pages()
        self._known = -1
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Scrape until cancelled."""
        try:
            while True:
                self.start_due(time.monotonic())
                wait = self._schedule.wait(time.monotonic())
                await asyncio.sleep(min(max(wait, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS))
        finally:
            for task in self._busy.values():
                task.cancel()
            self._pages.close()

    def start_due(self, now: float) -> None:
        """Start a scrape of every Ready pod that is due and has none under way, and forget pods that are gone."""
        if self._pods.changes != self._known:
            self._known = self._pods.changes
            ready = [pod for pod in self._pods.all() if pod.ready]
            self._schedule.keep((pod.name for pod in ready), now)
            self._samples.keep_only({pod.name for pod in ready})
            self._pages.keep_only(pod.ip for pod in ready)
        for name in self._schedule.due(now):
            pod = self._pods.get(name)
            if pod is not None and name not in self._busy:
                self._busy[name] = asyncio.create_task(self._scrape(pod))

    async def _scrape(self, pod: Pod) -> None:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                text = await self._page(pod)
            if not self._there(pod):
                return
            if pod.gateway:
                self._samples.add_gateway(pod, gateway_requests(text), time.monotonic(), time.time())
            else:
                self._samples.add(pod, parse(text, self._engine), time.monotonic(), time.time())
            self._telemetry.scrapes.labels("ok").inc()
        except BadSample as error:
            self._telemetry.rejected.labels(error.reason).inc()
            self._telemetry.scrapes.labels("rejected").inc()
        except (TimeoutError, OSError, FetchError):
            self._telemetry.scrapes.labels("failed").inc()
        finally:
            self._telemetry.scrape_seconds.observe(time.monotonic() - started)
            self._busy.pop(pod.name, None)

    async def _page(self, pod: Pod) -> str:
        if pod.gateway:
            return await self._pages.get(pod.ip, ports.GATEWAY_METRICS, "/stats/prometheus")
        return await self._pages.get(pod.ip, self._port, "/metrics")

    def _there(self, pod: Pod) -> bool:
        """Whether the pod is still Ready: it may have gone while its page was on the way."""
        now = self._pods.get(pod.name)
        return now is not None and now.ready and now.uid == pod.uid
