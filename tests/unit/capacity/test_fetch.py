"""The scraper's own GET, against every way in which an answer can go wrong."""

import asyncio
import random

import pytest

from capacity import fetch as fetching
from capacity.fetch import FetchError, Pages, fetch


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


class Server:
    """Counts connections; answers each with `answers` requests' worth of pages, then closes it, or hangs."""

    def __init__(self, answers: int, headers: bytes = b"") -> None:
        self.answers, self.headers, self.connections, self.asked, self.hang = answers, headers, 0, 0, False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for _ in range(self.answers):
                await reader.readuntil(b"\r\n\r\n")
                self.asked += 1
                if self.hang:
                    await asyncio.sleep(60)
                page = str(self.asked).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(page), self.headers, page))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def __aenter__(self) -> int:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        self.server.close()


async def test_pages_come_over_one_connection():
    pages, server = Pages(), Server(answers=100)
    async with server as port:
        assert [await pages.get("127.0.0.1", port, "/metrics") for _ in range(5)] == ["1", "2", "3", "4", "5"]
        assert server.connections == 1
        pages.keep_only(["10.0.0.1"])
        assert await pages.get("127.0.0.1", port, "/metrics") == "6"
        assert server.connections == 2
        pages.close()


@pytest.mark.parametrize(("answers", "headers"), [(1, b""), (100, b"Connection: close\r\n")])
async def test_a_server_that_closes_after_each_answer_is_asked_all_the_same(answers: int, headers: bytes):
    pages, server = Pages(), Server(answers, headers)
    async with server as port:
        for number in range(1, 5):
            assert await pages.get("127.0.0.1", port, "/metrics") == str(number)
            await asyncio.sleep(0.01)
        assert server.connections == 4
        pages.close()


async def test_a_connection_that_ends_as_it_is_asked_is_asked_again_on_a_new_one():
    """The server's end is on its way while the request is sent: only then is a request repeated."""
    pages, server = Pages(), Server(answers=1)
    async with server as port:
        for number in range(1, 4):
            assert await pages.get("127.0.0.1", port, "/metrics") == str(number)
        pages.close()


async def test_a_hanging_answer_takes_its_connection_with_it():
    pages, server = Pages(), Server(answers=100)
    async with server as port:
        await pages.get("127.0.0.1", port, "/metrics")
        server.hang = True
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await pages.get("127.0.0.1", port, "/metrics")
        server.hang = False
        assert await pages.get("127.0.0.1", port, "/metrics") == "3"
        assert server.connections == 2
        pages.close()


async def test_what_nobody_asked_for_is_not_taken_for_the_next_answer():
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n9"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(forged)
        await reader.read()
        writer.close()

    pages = Pages()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(5):
            assert [await pages.get("127.0.0.1", port, "/") for _ in range(3)] == ["1", "1", "1"]
        pages.close()
