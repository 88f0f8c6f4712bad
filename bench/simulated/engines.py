"""Engines with adjustable metrics on real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def served(app: Starlette, host: str, port: int) -> AsyncIterator[None]:
    """The app on a real socket for the time of the block."""
    async with all_served([(app, host, port)]):
        yield


@asynccontextmanager
async def all_served(apps: Iterable[tuple[Starlette, str, int]]) -> AsyncIterator[None]:
    """Each app on its host and port; they start and end together, as a server takes a tenth of a second to notice its end."""
    servers = [
        uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="error", lifespan="off", ws="none"))
        for app, host, port in apps
    ]
    tasks = [asyncio.create_task(server._serve()) for server in servers]
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        for server in servers:
            server.should_exit = server.force_exit = True
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.gather(*tasks), 5)


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


def engine_page(waiting: float, running: float, kv_usage: float, *, histograms: int = 1) -> str:
    """As vLLM writes it; a real engine has about 20 histograms of 30 lines, of which one matters here."""
    labels = 'engine="0",model_name="m"'
    lines = [
        f"vllm:num_requests_waiting{{{labels}}} {waiting}",
        f"vllm:num_requests_running{{{labels}}} {running}",
        f"vllm:kv_cache_usage_perc{{{labels}}} {kv_usage}",
    ]
    for number in range(histograms):
        name = "vllm:time_to_first_token_seconds" if number == 0 else f"vllm:histogram_{number}_seconds"
        lines += [f"# TYPE {name} histogram", *(f'{name}_bucket{{{labels},le="{le}"}} 0.0' for le in _BOUNDS)]
    return "\n".join(lines) + "\n"


_BOUNDS = [*(f"{0.001 * 1.6**step:.4f}" for step in range(27)), "+Inf"]


class ManyEngines(asyncio.Protocol):
    """Answers every request of every engine with one prepared page: cheap enough to play hundreds of them."""

    page = b""

    @classmethod
    def show(cls, text: str) -> None:
        """What all engines answer from now on."""
        body = text.encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n\r\n"
        cls.page = head.encode() + body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by asyncio; a GET has no body, so a blank line ends the request."""
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(self.page)
            if b"connection: close" in data:
                self._transport.close()
