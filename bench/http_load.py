"""A small HTTP/1.1 load generator: one thread, kept-alive connections, one request open on each."""

import selectors
import socket
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30
"""Seconds without any answer after which a run is given up."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run. Times in milliseconds, CPU in microseconds a request of the observed processes."""

    rate: float
    p50: float
    p99: float
    failed: int
    cpu: float


def post(path: str, body: bytes, key: str) -> bytes:
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def run(port: int, request: bytes, connections: int, seconds: float, pids: list[int], pause: float = 0) -> Result:
    """Sends the request over and over; `pause` seconds lie between an answer and the next request of a connection."""
    selector = selectors.DefaultSelector()
    began = cpu_seconds(pids)
    start = time.perf_counter()
    times: list[float] = []
    failed = 0
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(connection, selectors.EVENT_READ, [b"", time.perf_counter()])
        connection.sendall(request)
    while time.perf_counter() - start < seconds or not times:
        events = selector.select(timeout=PATIENCE)
        if not events:
            raise TimeoutError(f"the server at port {port} answered nothing for {PATIENCE} s")
        for event, _ in events:
            connection, state = event.fileobj, event.data
            assert isinstance(connection, socket.socket)
            part = connection.recv(65536)
            if not part:
                raise ConnectionError(f"the server at port {port} closed a connection")
            state[0] += part
            if not _complete(state[0]):
                continue
            times.append(time.perf_counter() - state[1])
            failed += not state[0].startswith(b"HTTP/1.1 200")
            if pause:
                time.sleep(pause)
            state[:] = [b"", time.perf_counter()]
            connection.sendall(request)
    took = time.perf_counter() - start
    spent = cpu_seconds(pids) - began
    for key in list(selector.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    selector.close()
    times.sort()
    return Result(
        rate=len(times) / took,
        p50=statistics.median(times) * 1000,
        p99=times[int(len(times) * 0.99)] * 1000,
        failed=failed,
        cpu=spent / len(times) * 1e6,
    )


def cpu_seconds(pids: list[int]) -> float:
    """CPU time that processes have used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


def resident_mebibytes(pid: int) -> float:
    """Memory of a process that is in RAM."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


def _complete(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return body.endswith(b"0\r\n\r\n")
