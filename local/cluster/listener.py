"""The host's only listener: a local load balancer in front of the gateway's NodePort, as a cloud would put one there."""

import json
import re
import socket
import subprocess

from local import tools
from local.cluster.files import write
from local.cluster.layout import GATEWAY_NODE_PORT, Layout
from local.cluster.processes import Service
from local.errors import LocalError

LISTENER = "load-balancer"


def load_balancer(layout: Layout) -> Service:
    """Envoy on 127.0.0.1, passing every connection on to the node; it reads nothing of what passes."""
    target = layout.configuration / "load-balancer.json"
    configuration = json.dumps(_configuration(layout))
    write(target, configuration)
    flags = ("--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
    command = (str(tools.path("envoy")), "--config-path", str(target), *flags)
    return Service(LISTENER, command, configuration=configuration)


def require_free(layout: Layout) -> None:
    """Raises LocalError naming who holds the port, if someone does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", layout.port))
        except OSError:
            raise LocalError(
                f"port {layout.port} is taken by {_holder(layout.port)}: stop it, or set MOONSTACK_PORT to a free port"
            ) from None


def _holder(port: int) -> str:
    listed = subprocess.run(
        ["ss", "--listening", "--tcp", "--numeric", "--processes", "--no-header", f"sport = :{port}"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r'\("([^"]+)",pid=(\d+)', listed.stdout)
    return f"{found[1]} (process {found[2]})" if found else "another program"


def _configuration(layout: Layout) -> dict[str, object]:
    proxy = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": "gateway",
        "cluster": "node",
        # Streams of a slow model may be silent for long; the gateway has the timeouts.
        "idle_timeout": "0s",
    }
    return {
        "static_resources": {
            "listeners": [
                {
                    "name": "gateway",
                    "address": _address("127.0.0.1", layout.port),
                    "filter_chains": [
                        {"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}]}
                    ],
                }
            ],
            "clusters": [
                {
                    "name": "node",
                    "connect_timeout": "3s",
                    "load_assignment": {
                        "cluster_name": "node",
                        "endpoints": [
                            {"lb_endpoints": [{"endpoint": {"address": _address(layout.node, GATEWAY_NODE_PORT)}}]}
                        ],
                    },
                }
            ],
        }
    }


def _address(address: str, port: int) -> dict[str, object]:
    return {"socket_address": {"address": address, "port_value": port}}
