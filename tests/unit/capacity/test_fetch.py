"""The scraper's own GET, against every way in which an answer can go wrong."""

import asyncio
import random

import pytest

from capacity import fetch as fetching
from capacity.fetch import FetchError, fetch


async def answered(answer: bytes, pieces: int = 1) -> str:
    """What `fetch` makes of raw bytes that a server sends and then closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        size = max(1, len(answer) // pieces)
        for start in range(0, len(answer), size):
            writer.write(answer[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        return await fetch("127.0.0.1", server.sockets[0].getsockname()[1], "/metrics")


async def test_a_page_with_a_length():
    assert await answered(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na 1\r\n", pieces=7) == "a 1\r\n"


async def test_a_page_in_chunks():
    assert (
        await answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na 1\r\n2;x=y\r\n\nb\r\n0\r\n\r\n", 9)
        == "a 1\nb"
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ],
)
async def test_anything_else_is_no_page(answer: bytes):
    with pytest.raises(FetchError):
        await answered(answer)


async def test_a_page_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetching, "PAGE_LIMIT", 1000)
    with pytest.raises(FetchError, match="larger"):
        await answered(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000)


async def test_random_bytes_never_raise_anything_else():
    rng = random.Random(1)
    for _ in range(50):
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + rng.randbytes(rng.randint(0, 60))
        with pytest.raises(FetchError):
            await answered(answer)
