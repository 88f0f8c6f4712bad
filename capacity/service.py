"""One replica: it scrapes, serves the metrics API, and acts while it holds the Lease."""

import asyncio
import logging
import signal
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capacity.act.leader import Elector
from capacity.api.app import Sources, api, telemetry_app
from capacity.api.server import ApiServer, plain_server
from capacity.config import ControllerConfig
from capacity.controller import Controller
from capacity.kube import Access, Kube
from capacity.pods import PodBook, follow
from capacity.samples import SampleBook
from capacity.scrape import Scraper
from capacity.telemetry import Telemetry
from rules import names, ports

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Listen:
    """Where a replica listens, and with which certificate."""

    certificate: Path
    key: Path
    host: str = "0.0.0.0"
    port: int = ports.CAPACITY_API
    metrics_port: int = ports.CAPACITY_METRICS


async def serve(config: ControllerConfig, access: Access, listen: Listen, identity: str = "") -> None:
    """Run until SIGTERM or SIGINT, or until a part fails: then the whole replica does, and Kubernetes restarts it."""
    kube, stop = Kube(access), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    coroutines = [*_parts(config, kube, listen, identity or socket.gethostname()), _until(stop)]
    parts = [asyncio.create_task(part) for part in coroutines]
    try:
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in done:
            part.result()
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        await kube.close()


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()


def _parts(config: ControllerConfig, kube: Kube, listen: Listen, identity: str) -> list[Coroutine[Any, Any, None]]:
    pods, samples, telemetry = PodBook(), SampleBook(config.ttft_window), Telemetry()
    server = ApiServer(kube, listen.certificate, listen.key, listen.host, listen.port)
    elector = Elector(kube, config.namespace, names.CAPACITY, identity)
    sources = Sources(config.namespace, kube, pods, samples, server.allows)
    scraper = Scraper(
        pods,
        samples,
        telemetry,
        engine=config.engine,
        port=config.engine_port,
        interval=config.scrape_interval,
        timeout=config.scrape_timeout,
    )
    return [
        follow(pods, kube, config.namespace),
        scraper.run(),
        server.run(api(sources)),
        plain_server(telemetry_app(telemetry), listen.host, listen.metrics_port),
        elector.run(),
        Controller(config, kube, pods, samples, elector, telemetry).run(),
    ]
