"""Free ports on loopback, never the same twice in one run."""

import socket

_GIVEN: set[int] = set()


def free_port() -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port
