"""A DNS server on loopback that plays a headless Service: one answer a Ready pod."""

import socket
import socketserver
import struct
import threading
from collections.abc import Iterable
from typing import Final

_A, _IN, _TTL = 1, 1, 5
_HEADER: Final = struct.Struct("!HHHHHH")
_RECORD: Final = struct.Struct("!HHHIH4s")
_SAME_NAME: Final = 0xC00C
_ANSWERED, _FAILED = 0x8580, 0x8582


class NameServer:
    """Answers every name with `addresses` (IPv4), with nothing where something else is asked for, and while `failing` with SERVFAIL."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self.addresses = list(addresses)
        self.failing = False
        self.failures = 0
        self._server = socketserver.UDPServer(("127.0.0.1", 0), self._handler())

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def start(self) -> "NameServer":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, query: bytes) -> bytes:
        end = query.index(b"\0", _HEADER.size) + 5
        asked = struct.unpack("!H", query[end - 4 : end - 2])[0]
        addresses = list(self.addresses) if asked == _A and not self.failing else []
        self.failures += self.failing
        records = [_RECORD.pack(_SAME_NAME, _A, _IN, _TTL, 4, socket.inet_aton(one)) for one in addresses]
        flags = _FAILED if self.failing else _ANSWERED
        header = _HEADER.pack(int.from_bytes(query[:2], "big"), flags, 1, len(records), 0, 0)
        return header + query[_HEADER.size : end] + b"".join(records)

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        server = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                query, reply = self.request
                reply.sendto(server._answer(query), self.client_address)

        return Handler
