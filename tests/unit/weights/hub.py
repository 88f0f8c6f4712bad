"""A small hub on loopback that serves one repository, can corrupt files and break connections, and remembers what it was asked."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

REVISION = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "example/model"


@dataclass
class Hub:
    """What the hub holds and how it misbehaves; `ranges` lists (file, offset) of each download."""

    files: dict[str, bytes]
    corrupt: set[str] = field(default_factory=set)
    break_after: int | None = None
    pause: float = 0
    ignore_ranges: bool = False
    ranges: list[tuple[str, int]] = field(default_factory=list)
    address: str = ""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub, served while this lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    yield hub
    server.shutdown()
    server.server_close()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path == f"/api/models/{REPOSITORY}/tree/{REVISION}":
                self._answer(json.dumps([_entry(*each) for each in hub.files.items()]).encode())
            elif path.startswith(f"/{REPOSITORY}/resolve/{REVISION}/"):
                self._download(path.rpartition(f"{REVISION}/")[2])
            else:
                self.send_error(404)

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _download(self, name: str) -> None:
            asked = self.headers.get("Range", "bytes=0-")
            offset = 0 if hub.ignore_ranges else int(asked.removeprefix("bytes=").rstrip("-"))
            hub.ranges.append((name, offset))
            body = hub.files[name]
            if name in hub.corrupt:
                body = body[:-1] + bytes([body[-1] ^ 1])
            rest = body[offset:]
            self.send_response(206 if offset else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self._send(rest)

        def _send(self, rest: bytes) -> None:
            for start in range(0, len(rest), 65_536):
                if hub.break_after is not None and start >= hub.break_after:
                    hub.break_after = None
                    self.close_connection = True
                    return
                self.wfile.write(rest[start : start + 65_536])
                time.sleep(hub.pause)

        def log_message(self, format: str, *args: object) -> None: ...

    return Handler


def _entry(path: str, content: bytes) -> dict[str, object]:
    blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": blob}
    if path.endswith(".safetensors"):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return entry
