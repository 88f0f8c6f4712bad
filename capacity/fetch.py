"""GETs of metrics pages: a general HTTP client costs several times the CPU of the scrape itself."""

import asyncio
from collections.abc import Iterable
from typing import Final

PAGE_LIMIT = 4 * 2**20
_END: Final = b"\r\n\r\n"


class FetchError(Exception):
    """No page came: the status was not 200, the answer was cut short, malformed or too large."""


class Pages:
    """Keeps one connection a server between two scrapes; servers close idle ones after five seconds or more."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], _Connection] = {}

    async def get(self, host: str, port: int, path: str) -> str:
        """The body of a page; one call a server at a time. Raises OSError and FetchError; the caller sets the deadline."""
        kept = self._kept.pop((host, port), None)
        if kept is not None and kept.open:
            try:
                return await self._ask(kept, host, port, path)
            except _Gone:
                pass  # the server had closed it meanwhile, or another pod has the address
        fresh = await _connect(host, port)
        return await self._ask(fresh, host, port, path)

    def keep_only(self, hosts: Iterable[str]) -> None:
        """Close the connections to all other hosts."""
        wanted = set(hosts)
        for key in [key for key in self._kept if key[0] not in wanted]:
            self._kept.pop(key).close()

    def close(self) -> None:
        """Close all connections."""
        self.keep_only(())

    async def _ask(self, connection: "_Connection", host: str, port: int, path: str) -> str:
        done = False
        try:
            page = await connection.ask(_request(host, port, path, keep=True))
            done = True
            return page
        finally:
            if done and connection.reusable:
                self._kept[host, port] = connection
            else:
                connection.close()


async def fetch(host: str, port: int, path: str) -> str:
    """One page over a connection of its own. Raises OSError and FetchError; the caller sets the deadline."""
    connection = await _connect(host, port)
    try:
        return await connection.ask(_request(host, port, path, keep=False))
    finally:
        connection.close()


def _request(host: str, port: int, path: str, *, keep: bool) -> bytes:
    name = f"[{host}]" if ":" in host else host
    close = "" if keep else "connection: close\r\n"
    return f"GET {path} HTTP/1.1\r\nhost: {name}:{port}\r\n{close}\r\n".encode()


async def _connect(host: str, port: int) -> "_Connection":
    _, connection = await asyncio.get_running_loop().create_connection(_Connection, host, port)
    return connection


class _Gone(FetchError):
    """The connection ended before the first byte of an answer."""


class _Connection(asyncio.Protocol):
    """One request after the other; an answer ends by its length, its last chunk, or with the connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer = bytearray()
        self._asked: asyncio.Future[str] | None = None
        self._head: _Head | None = None
        self._surplus = False
        self.open = False

    @property
    def reusable(self) -> bool:
        """Whether the answer left the connection fit for another."""
        return self.open and self._head is not None and self._head.keeps_alive and not self._surplus

    def ask(self, request: bytes) -> asyncio.Future[str]:
        """Send a request; the future is the body of its answer, or FetchError."""
        self._answer, self._head = bytearray(), None
        self._asked = asyncio.get_running_loop().create_future()
        if self._transport is None or not self.open:
            self._asked.set_exception(_Gone("the connection is closed"))
        else:
            self._transport.write(request)
        return self._asked

    def close(self) -> None:
        """End the connection; an answer under way is dropped."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.open = transport, True

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio; the end of the connection ends an answer that says nothing of its length."""
        self.open = False
        if not self._answer:
            self._finish(_Gone(f"no answer: {exc or 'the connection was closed'}"))
        else:
            self._finish(None)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._asked is None or self._asked.done():
            self._surplus = True
            return
        self._answer += data
        if len(self._answer) > PAGE_LIMIT:
            self._finish(FetchError(f"the page is larger than {PAGE_LIMIT} bytes"))
            return
        if self._head is None and _END in self._answer:
            self._head = _Head(self._answer)
        if self._head is not None and self._head.complete(self._answer):
            self._surplus = self._head.more(self._answer)
            self._finish(None)

    def _finish(self, error: FetchError | None) -> None:
        if self._asked is None or self._asked.done():
            return
        if error is None:
            try:
                self._asked.set_result(_body(bytes(self._answer)).decode(errors="replace"))
                return
            except FetchError as found:
                error = found
        self._asked.set_exception(error)


class _Head:
    """Where an answer ends, as its headers say."""

    def __init__(self, answer: bytearray) -> None:
        head = bytes(answer[: answer.index(_END)])
        headers = _headers(head.split(b"\r\n")[1:])
        self._start = len(head) + len(_END)
        self._chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        length = headers.get(b"content-length", b"")
        self._length = int(length) if length.isdigit() else None
        self.keeps_alive = head.startswith(b"HTTP/1.1 ") and headers.get(b"connection", b"").lower() != b"close"

    def complete(self, answer: bytearray) -> bool:
        """Whether all of the answer is there; one without a length and chunks ends with its connection."""
        if self._chunked:
            return answer.endswith(b"0\r\n\r\n") and _whole(bytes(answer[self._start :]))
        return self._length is not None and len(answer) >= self._start + self._length

    def more(self, answer: bytearray) -> bool:
        """Whether bytes came that no request asked for."""
        return not self._chunked and self._length is not None and len(answer) > self._start + self._length


def _whole(chunks: bytes) -> bool:
    try:
        _joined(chunks)
    except FetchError:
        return False
    return True


def _headers(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}


def _body(answer: bytes) -> bytes:
    head, separator, body = answer.partition(_END)
    status, *lines = head.split(b"\r\n")
    if not separator or status.split(b" ")[1:2] != [b"200"]:
        raise FetchError(f"answered {status[:60]!r}")
    headers = _headers(lines)
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        return _joined(body)
    length = headers.get(b"content-length", b"")
    if length.isdigit() and len(body) < int(length):
        raise FetchError("the answer was cut short")
    return body[: int(length)] if length.isdigit() else body


def _joined(body: bytes) -> bytes:
    parts, at = [], 0
    while True:
        end = body.find(b"\r\n", at)
        try:
            size = int(body[at:end].partition(b";")[0], 16) if end >= 0 else -1
        except ValueError:
            size = -1
        if size < 0 or (size and len(body) < end + 2 + size):
            raise FetchError("a chunk is missing or malformed")
        if size == 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 4 + size
