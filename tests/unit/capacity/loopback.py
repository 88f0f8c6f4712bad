"""Real sockets on loopback: an API server in memory, engines with adjustable metrics, certificates of a front proxy."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from components.scaling.certificates import KeyPair, new_authority, new_certificate


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def served(app: Starlette, host: str, port: int) -> AsyncIterator[None]:
    """The app on a real socket for the time of the block."""
    server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="error", lifespan="off", ws="none"))
    task = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)


@dataclass
class FakeEngine:
    """Answers /metrics as vLLM does; `page` replaces the whole answer, `hang` gives none."""

    waiting: float = 0
    running: float = 0
    kv_usage: float = 0
    hang: bool = False
    page: str | None = None
    asked: int = 0
    _never: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/metrics", self._metrics)])

    async def _metrics(self, _: Request) -> Response:
        self.asked += 1
        if self.hang:
            await self._never.wait()
        return PlainTextResponse(self.page or engine_page(self.waiting, self.running, self.kv_usage))


def engine_page(waiting: float, running: float, kv_usage: float) -> str:
    labels = '{engine="0",model_name="m"}'
    return (
        f"vllm:num_requests_waiting{labels} {waiting}\n"
        f"vllm:num_requests_running{labels} {running}\n"
        f"vllm:kv_cache_usage_perc{labels} {kv_usage}\n"
    )


class Certificates:
    """What the API server and the controller know of each other: serving certificate, front-proxy CA and client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.serving_ca, self.proxy_ca = new_authority("serving"), new_authority("front-proxy")
        self.serving = self._write("tls", new_certificate(self.serving_ca, ["localhost"]))

    def client(self, name: str, authority: KeyPair | None = None) -> ssl.SSLContext:
        """How a client with that common name calls the metrics API."""
        certificate, key = self._write(name, new_certificate(authority or self.proxy_ca, [name], client=True))
        context = self.anonymous()
        context.load_cert_chain(certificate, key)
        return context

    def anonymous(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.serving_ca.certificate)

    def _write(self, name: str, pair: KeyPair) -> tuple[Path, Path]:
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_text(pair.certificate)
        key.write_text(pair.key)
        return certificate, key
