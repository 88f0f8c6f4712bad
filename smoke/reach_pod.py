"""Runs inside the cluster: tries to connect to each `name=host:port` and prints which could be reached, as one JSON object.

Standard library alone.
"""

import json
import socket
import sys

TIMEOUT_SECONDS = 3.0


def reachable(address: str) -> bool:
    """Whether a TCP connection can be made."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), TIMEOUT_SECONDS):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    pairs = [argument.split("=", 1) for argument in sys.argv[1:]]
    print(json.dumps({name: reachable(address) for name, address in pairs}), flush=True)
