"""A real Prometheus beside the cluster: it scrapes the stack's pods through the API server, as no route leads to them."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench.simulated.engines import free_port
from components.scaling.monitoring import SCRAPED
from local import packages
from local.cluster.layout import layout
from local.cluster.pki import certificate_file, key_file
from local.progress import Progress


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10, trust_env=False)

    def query(self, text: str) -> list[dict[str, Any]]:
        """The result of a query; fails with Prometheus' own words for one that it can't read."""
        answer = self._http.get("/api/v1/query", params={"query": text}).json()
        assert answer["status"] == "success", (text, answer.get("error"))
        return answer["data"]["result"]

    def kind(self, metric: str) -> str | None:
        """Gauge, counter or histogram, as the scraped page declared it; None for a metric that nobody exposes."""
        data = self._http.get("/api/v1/metadata", params={"metric": metric}).json()["data"]
        return data[metric][0]["type"] if metric in data else None

    def up(self) -> dict[str, bool]:
        """Scraped pods and whether the last scrape worked."""
        return {row["metric"]["pod"]: row["value"][1] == "1" for row in self.query("up")}


@contextmanager
def running(folder: Path, api: httpx.Client, namespace: str) -> Iterator[Prometheus]:
    """Prometheus over the pods that the namespace has now."""
    packages.ensure(["prometheus"], Progress())
    port = free_port()
    (folder / "prometheus.yml").write_text(yaml.safe_dump(_configuration(api, namespace)))
    command = [
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            found = Prometheus(port)
            _wait_for_scrapes(found)
            yield found
        finally:
            process.terminate()


def _wait_for_scrapes(found: Prometheus, seconds: float = 40) -> None:
    started, state = time.monotonic(), {}
    while time.monotonic() - started < seconds:
        try:
            state = found.up()
            if state and all(state.values()) and found.query("count_over_time(up[20s]) >= 4"):
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"not all pods were scraped: {state}")


def _configuration(api: httpx.Client, namespace: str) -> dict[str, Any]:
    here = layout()
    tls = {
        "ca_file": str(certificate_file(here, "ca")),
        "cert_file": str(certificate_file(here, "administrator")),
        "key_file": str(key_file(here, "administrator")),
    }
    jobs = []
    pods = api.get(f"/api/v1/namespaces/{namespace}/pods").json()["items"]
    for pod in pods:
        meta, name = pod["metadata"], pod["metadata"]["name"]
        where = SCRAPED.get(meta.get("labels", {}).get("app.kubernetes.io/component", ""))
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        if where is None or not ready:
            continue
        port, path = where
        jobs.append(
            {
                "job_name": name,
                "scheme": "https",
                "tls_config": tls,
                "metrics_path": f"/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy{path}",
                "static_configs": [
                    {"targets": [here.server.removeprefix("https://")], "labels": {"namespace": namespace, "pod": name}}
                ],
            }
        )
    return {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": jobs}
