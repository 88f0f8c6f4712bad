"""One GET over a connection of its own: a general HTTP client costs several times the CPU of the scrape itself."""

import asyncio

PAGE_LIMIT = 4 * 2**20


class FetchError(Exception):
    """No page came: the status was not 200, the answer was cut short, malformed or too large."""


async def fetch(host: str, port: int, path: str) -> str:
    """The body of a page. Raises OSError and FetchError; the caller sets the deadline."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        name = f"[{host}]" if ":" in host else host
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {name}:{port}\r\nconnection: close\r\n\r\n".encode())
        answer = bytearray()
        while part := await reader.read(2**16):
            answer += part
            if len(answer) > PAGE_LIMIT:
                raise FetchError(f"the page is larger than {PAGE_LIMIT} bytes")
    finally:
        writer.close()
    return _body(bytes(answer)).decode(errors="replace")


def _body(answer: bytes) -> bytes:
    head, separator, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    if not separator or status.split(b" ")[1:2] != [b"200"]:
        raise FetchError(f"answered {status[:60]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        return _joined(body)
    length = headers.get(b"content-length", b"")
    if length.isdigit() and len(body) < int(length):
        raise FetchError("the answer was cut short")
    return body


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
