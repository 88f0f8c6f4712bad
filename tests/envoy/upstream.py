"""Fake OpenAI-compatible servers: in the cluster over HTTP/1.1, or the channel over TLS, with faults on request."""

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from bench.simulated.sockets import free_port


@dataclass
class Seen:
    """What one request looked like on arrival."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    version: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass
class Upstream:
    """A server on loopback. `fault` is a status to answer, or one of hang, cut; `ready` is what readiness says.

    `said` is the text of a status to answer, for servers whose errors have another form. `parts` are what a stream is made of;
    after the first, it waits for `go_on`. With `compress`, whole answers are compressed for those who take it.
    """

    name: str
    port: int = field(default_factory=free_port)
    host: str = "127.0.0.1"
    fault: int | str | None = None
    said: str | None = None
    ready: bool = True
    delay: float = 0
    chunk_gap: float = 0.0
    filler: int = 0
    prompt_tokens: int = 11
    parts: Sequence[bytes] = ()
    go_on: threading.Event | None = None
    compress: bool = False
    seen: list[Seen] = field(default_factory=list)
    active: int = 0
    _server: uvicorn.Server | None = None

    def start(self) -> "Upstream":
        config = uvicorn.Config(
            self._app,
            host=self.host,
            port=self.port,
            log_level="critical",
            interface="asgi3",
            access_log=False,
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        threading.Thread(target=self._server.run, daemon=True).start()
        for _ in range(500):
            if self._server.started:
                return self
            time.sleep(0.01)
        raise AssertionError(f"upstream {self.name} did not start")

    def stop(self) -> None:
        if self._server:
            self._server.force_exit = self._server.should_exit = True
            while self._server.started and self._server.servers and any(s.is_serving() for s in self._server.servers):
                time.sleep(0.01)
            self._server = None

    async def _app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["path"] in ("/readiness", "/readyz"):
            await _answer(send, 200 if self.ready else 503, b"{}")
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        self.seen.append(Seen(scope["method"], scope["path"], headers, body, scope["http_version"]))
        self.active += 1
        try:
            await self._serve(body, headers, send)
        finally:
            self.active -= 1

    async def _serve(self, body: bytes, headers: dict[str, str], send: Any) -> None:
        if self.fault == "hang":
            await asyncio.sleep(60)
        if isinstance(self.fault, int):
            error = self.said or json.dumps({"error": {"message": f"fault of {self.name}"}})
            await _answer(send, self.fault, error.encode())
            return
        await asyncio.sleep(self.delay)
        asked = json.loads(body or b"{}")
        if asked.get("stream"):
            await self._stream(asked, send)
            return
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": 7, "total_tokens": self.prompt_tokens + 7}
        choice = {"index": 0, "message": {"role": "assistant", "content": f"from {self.name}" + "y" * self.filler}}
        answer = {"object": "chat.completion", "model": asked.get("model"), "choices": [choice], "usage": usage}
        text = json.dumps(answer).encode()
        packed = self.compress and "gzip" in headers.get("accept-encoding", "")
        await _answer(send, 200, gzip.compress(text) if packed else text, packed)

    async def _stream(self, asked: dict[str, Any], send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for part in self.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            while self.go_on and not self.go_on.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(self.chunk_gap)
        if self.parts:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        for index in range(4):
            chunk = {"model": asked["model"], "choices": [{"delta": {"content": f"{self.name}-{index}"}}]}
            await send(_part(chunk))
            if self.fault == "cut" and index == 1:
                raise ConnectionError("cut on purpose")
            await asyncio.sleep(self.chunk_gap)
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": 4}
        await send(_part({"model": asked["model"], "choices": [], "usage": usage}))
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})


def _part(chunk: dict[str, Any]) -> dict[str, Any]:
    return {"type": "http.response.body", "body": f"data: {json.dumps(chunk)}\n\n".encode(), "more_body": True}


async def _answer(send: Any, status: int, body: bytes, packed: bool = False) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if packed:
        headers.append((b"content-encoding", b"gzip"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
