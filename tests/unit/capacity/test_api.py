"""The metrics API as the HPA sees it."""

import time

import httpx
import pytest

from bench.simulated.cluster import FakeCluster
from capacity.api.app import Sources, api
from capacity.exposition import EngineSample
from capacity.pods import Pod, PodBook, pod_of
from capacity.samples import STUCK_SECONDS, SampleBook

ROOT = "/apis/custom.metrics.k8s.io/v1beta2"


class Api:
    """The app with a cluster of pods; `scrape` gives a pod a sample."""

    def __init__(self, allowed: bool = True) -> None:
        self.cluster, self.pods, self.samples = FakeCluster(), PodBook(), SampleBook(60)
        sources = Sources("n", self.cluster.kube(), self.pods, self.samples, lambda peer: allowed)
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(api(sources)), base_url="https://metrics")

    def add(self, name: str, *, ready: bool = True, **labels: str) -> Pod:
        pod = pod_of(self.cluster.objects[self.cluster.pod(name, ready=ready, labels=labels)])
        self.pods.set(pod)
        return pod

    def scrape(self, pod: Pod, waiting: float, running: float = 1, age: float = 0) -> None:
        self.samples.add(pod, EngineSample(waiting, running, 0.5), time.monotonic() - age, time.time() - age)

    async def values(self, metric: str, selector: str = "") -> dict[str, str]:
        answer = await self.http.get(f"{ROOT}/namespaces/n/pods/*/{metric}", params={"labelSelector": selector})
        assert answer.status_code == 200, answer.text
        return {item["describedObject"]["name"]: item["value"] for item in answer.json()["items"]}


async def test_discovery_lists_one_resource_a_metric():
    names = [r["name"] for r in (await Api().http.get(ROOT)).json()["resources"]]
    assert "pods/inference_queue_depth" in names and "pods/gpu_memory_utilization" in names


async def test_values_are_milli_quantities_and_only_of_selected_pods():
    served = Api()
    served.scrape(served.add("a", app="x"), 1.25)
    served.scrape(served.add("b", app="y"), 20)
    assert await served.values("inference_queue_depth", "app=x") == {"a": "1250m"}
    assert await served.values("gpu_memory_utilization", "app=y") == {"b": "50000m"}


async def test_an_idle_pod_reports_zero_and_one_that_is_not_ready_nothing():
    served = Api()
    served.scrape(served.add("idle", app="x"), 0, 0)
    served.scrape(served.add("loading", ready=False, app="x"), 0, 0)
    assert await served.values("inference_queue_depth", "app=x") == {"idle": "0m"}
    assert await served.values("inference_ttft_seconds", "app=x") == {"idle": "0m"}


async def test_a_stale_sample_is_left_out():
    served = Api()
    served.scrape(served.add("a", app="x"), 3, age=16)
    assert await served.values("inference_queue_depth", "app=x") == {}


async def test_a_pod_that_took_the_name_of_another_starts_without_a_value():
    served = Api()
    served.scrape(served.add("a", app="x"), 3)
    other = Pod("a", "another-uid", "127.0.0.1", ready=True)
    served.pods.set(other)
    assert await served.values("inference_queue_depth", "app=x") == {}
    served.scrape(other, 4)
    assert await served.values("inference_queue_depth", "app=x") == {"a": "4000m"}


async def test_an_engine_that_claims_a_queue_while_nothing_runs_is_not_believed_for_long():
    served = Api()
    pod = served.add("liar", app="x")
    served.scrape(pod, 5000, 0, age=STUCK_SECONDS + 1)
    served.scrape(pod, 5000, 0)
    assert await served.values("inference_queue_depth", "app=x") == {}
    served.scrape(pod, 5, 1)
    assert await served.values("inference_queue_depth", "app=x") == {"liar": "5000m"}


@pytest.mark.parametrize("path", ["namespaces/n/pods/*/unknown", "namespaces/other/pods/*/inference_queue_depth"])
async def test_what_is_not_served_is_404(path: str):
    assert (await Api().http.get(f"{ROOT}/{path}")).status_code == 404


async def test_a_dead_api_server_is_503_so_that_the_hpa_holds():
    served = Api()
    served.cluster.down = True
    answer = await served.http.get(f"{ROOT}/namespaces/n/pods/*/inference_queue_depth")
    assert answer.status_code == 503 and answer.json()["kind"] == "Status"


async def test_only_the_front_proxy_may_ask_but_anybody_may_probe():
    served = Api(allowed=False)
    assert (await served.http.get(ROOT)).status_code == 401
    assert (await served.http.get(f"{ROOT}/namespaces/n/pods/*/inference_queue_depth")).status_code == 401
    assert (await served.http.get("/healthz")).status_code == 200


async def test_a_replica_is_ready_once_it_knows_the_pods():
    served = Api()
    assert (await served.http.get("/readyz")).status_code == 503
    served.pods.replace([])
    assert (await served.http.get("/readyz")).status_code == 200
