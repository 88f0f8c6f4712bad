"""Asks every Ready engine and gateway once a second for its metrics; one that hangs holds up nobody else."""

import asyncio
import time

from capacity.exposition import BadSample, gateway_requests, parse
from capacity.fetch import FetchError, fetch
from capacity.pods import Pod, PodBook
from capacity.samples import SampleBook
from capacity.telemetry import Telemetry
from rules import ports
from rules.metrics import Engine


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
        self._port, self._interval, self._timeout = port, interval, timeout
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Scrape until cancelled."""
        try:
            while True:
                started = time.monotonic()
                self.start_round()
                await asyncio.sleep(max(0.0, self._interval - (time.monotonic() - started)))
        finally:
            for task in self._busy.values():
                task.cancel()

    def start_round(self) -> None:
        """Start a scrape of every Ready pod that has none under way, and forget pods that are gone."""
        ready = [pod for pod in self._pods.all() if pod.ready]
        self._samples.keep_only({pod.name for pod in ready})
        for pod in ready:
            if pod.name not in self._busy:
                self._busy[pod.name] = asyncio.create_task(self._scrape(pod))

    async def _scrape(self, pod: Pod) -> None:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                text = await self._page(pod)
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
            return await fetch(pod.ip, ports.GATEWAY_METRICS, "/stats/prometheus")
        return await fetch(pod.ip, self._port, "/metrics")
