"""One replica as a whole, on real sockets: engines scraped, metrics served, warm pods activated, faults survived."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bench.simulated.cluster import FakeCluster
from bench.simulated.engines import FakeEngine, all_served, free_port, served
from capacity.act import memory as memories
from capacity.act.actor import MANAGER
from capacity.act.leader import Elector
from capacity.api.front_proxy import CONFIG
from capacity.config import ControllerConfig, Target
from capacity.kube import Access, Kube
from capacity.service import Listen, serve
from components.scaling.certificates import new_authority
from rules.warm_pool import RESTING
from tests.unit.capacity.certificates import Certificates

SELECTOR = {"app": "serve"}
WARM = {"app": "warm"}
HPA = "/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/m"
STATE = memories.path("n")
ENGINE = {"app.kubernetes.io/component": "engine"}


@dataclass
class Replica:
    """A running replica with two serving engines and a warm one."""

    cluster: FakeCluster
    engines: dict[str, FakeEngine]
    certificates: Certificates
    url: str
    metrics_url: str

    async def values(self, metric: str = "inference_queue_depth", selector: str = "app=serve") -> dict[str, float]:
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/n/pods/*/{metric}"
        async with httpx.AsyncClient(base_url=self.url, verify=self.certificates.client("proxy")) as http:
            answer = await http.get(path, params={"labelSelector": selector})
        answer.raise_for_status()
        return {i["describedObject"]["name"]: int(i["value"][:-1]) / 1000 for i in answer.json()["items"]}

    def routed(self, pod: str) -> str:
        labels = self.cluster.objects[f"/api/v1/namespaces/n/pods/{pod}"]["metadata"]["labels"]
        return labels["moonstack.dev/routed"]


async def until(condition: Callable[[], Any], seconds: float = 6) -> float:
    """Wait for a condition, which may be async; returns the seconds it took."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        found = condition()
        if await found if asyncio.iscoroutine(found) else found:
            return time.monotonic() - started
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


@asynccontextmanager
async def replica(tmp_path: Path, **options: Any) -> AsyncIterator[Replica]:
    cluster, certificates = FakeCluster(), Certificates(tmp_path)
    proxy = {
        "requestheader-client-ca-file": certificates.proxy_ca.certificate,
        "requestheader-allowed-names": '["proxy"]',
    }
    cluster.put(CONFIG, {"metadata": {"name": "extension-apiserver-authentication"}, "data": proxy})
    cluster.put(STATE, {"metadata": {"name": "state"}})
    cluster.put(
        HPA,
        {"metadata": {"name": "m"}, "spec": {"minReplicas": 2, "maxReplicas": 10}, "status": {"currentReplicas": 2}},
    )
    port, api, page, kube_port = free_port(), free_port(), free_port(), free_port()
    target = Target(
        name="m", model="m", role="decode", selector=SELECTOR, low=2, high=10, scaled=True,
        requests_per_pod=12, warm="m-warm", warm_selector=WARM,
    )  # fmt: skip
    settings = {"scrape_interval": 0.2, "scrape_timeout": 0.5, "calm_seconds": 1} | options
    config = ControllerConfig(namespace="n", targets=(target,), engine_port=port, **settings)
    engines = {"s1": FakeEngine(), "s2": FakeEngine(), "w1": FakeEngine()}
    apps = [(cluster.app(), "127.0.0.1", kube_port)]
    for number, (name, engine) in enumerate(engines.items(), start=2):
        apps.append((engine.app(), f"127.0.0.{number}", port))
        own = WARM | RESTING if name == "w1" else SELECTOR
        cluster.pod(name, ip=f"127.0.0.{number}", labels=ENGINE | own)
    async with all_served(apps):
        listen = Listen(
            certificate=certificates.serving[0],
            key=certificates.serving[1],
            host="127.0.0.1",
            port=api,
            metrics_port=page,
        )
        access = Access(f"http://127.0.0.1:{kube_port}", tls=False)
        task = asyncio.create_task(serve(config, access, listen, identity="one"))
        running = Replica(cluster, engines, certificates, f"https://localhost:{api}", f"http://127.0.0.1:{page}")
        try:
            await until(lambda: _answers(running, task), 10)
            yield running
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _answers(running: Replica, task: asyncio.Task[None]) -> bool:
    if task.done():
        task.result()
    try:
        return len(await running.values()) == 2
    except httpx.HTTPError:
        return False


async def test_a_changed_metric_is_visible_within_a_scrape(tmp_path: Path):
    async with replica(tmp_path) as one:
        one.engines["s1"].waiting, one.engines["s1"].running = 7, 1

        async def visible() -> bool:
            return (await one.values())["s1"] == 7

        assert await until(visible) < 1.0


async def test_only_the_front_proxys_certificate_opens_the_api(tmp_path: Path):
    async with replica(tmp_path) as one:
        url = f"{one.url}/apis/custom.metrics.k8s.io/v1beta2"

        async def status(verify: Any) -> int:
            async with httpx.AsyncClient(verify=verify) as http:
                return (await http.get(url, headers={"X-Remote-User": "system:admin"})).status_code

        certificates = one.certificates
        assert await status(certificates.client("proxy")) == 200
        assert await status(certificates.anonymous()) == 401
        assert await status(certificates.client("somebody")) == 401
        with pytest.raises(httpx.HTTPError):
            await status(certificates.client("proxy", new_authority("forged")))


async def test_a_hanging_engine_loses_its_sample_and_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("capacity.samples.SAMPLE_AGE_LIMIT_SECONDS", 1.0)
    async with replica(tmp_path) as one:
        one.engines["s2"].hang = True

        async def alone() -> bool:
            return set(await one.values()) == {"s1"}

        await until(alone)
        before = one.engines["s1"].asked
        await asyncio.sleep(1)
        assert one.engines["s1"].asked - before >= 4
        one.engines["s2"].hang = False

        async def both() -> bool:
            return set(await one.values()) == {"s1", "s2"}

        await until(both)


async def test_an_engine_that_lies_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("capacity.samples.SAMPLE_AGE_LIMIT_SECONDS", 1.0)
    async with replica(tmp_path) as one:
        one.engines["s2"].waiting = 1e9

        async def alone() -> bool:
            return set(await one.values()) == {"s1"}

        await until(alone)
        async with httpx.AsyncClient() as http:
            assert 'rejected_samples_total{reason="range"}' in (await http.get(f"{one.metrics_url}/metrics")).text


async def test_a_burst_activates_the_warm_pod_and_calm_returns_it(tmp_path: Path):
    async with replica(tmp_path) as one:
        for name in ("s1", "s2"):
            one.engines[name].waiting, one.engines[name].running = 30, 12
        assert await until(lambda: one.routed("w1") == "true") < 3
        await until(lambda: one.cluster.objects[HPA]["spec"]["minReplicas"] == 3)
        applied = [body for _, path, body in one.cluster.calls if path == HPA]
        assert all(body["spec"] == {"minReplicas": body["spec"]["minReplicas"]} for body in applied)
        for engine in one.engines.values():
            engine.waiting = engine.running = 0
        await until(lambda: one.routed("w1") == "false", 8)


async def test_an_api_server_that_goes_away_and_comes_back_changes_nothing(tmp_path: Path):
    async with replica(tmp_path) as one:
        writes = len([call for call in one.cluster.calls if "pods" in call[1]])
        one.cluster.down = True
        await asyncio.sleep(1.5)
        one.cluster.down = False

        async def back() -> bool:
            try:
                return set(await one.values()) == {"s1", "s2"}
            except httpx.HTTPError:
                return False

        await until(back)
        assert len([call for call in one.cluster.calls if "pods" in call[1]]) == writes


async def test_a_gateway_is_scraped_on_its_own_port_and_served_as_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("rules.ports.GATEWAY_METRICS", port := free_port("127.0.0.9"))
    taken = iter(range(0, 100_000, 10))

    async def page(_: Request) -> Response:
        return PlainTextResponse(
            f'envoy_http_downstream_rq_total{{envoy_http_conn_manager_prefix="gateway"}} {next(taken)}\n'
        )

    app = Starlette(routes=[Route("/stats/prometheus", page)])
    async with replica(tmp_path) as one, served(app, "127.0.0.9", port):
        one.cluster.pod("g1", ip="127.0.0.9", labels={"app.kubernetes.io/component": "gateway", "app": "gateway"})

        async def rate() -> bool:
            found = await one.values("gateway_requests_per_second", "app=gateway")
            return 20 < found.get("g1", 0) < 80

        await until(rate)
        assert await one.values("inference_queue_depth", "app=gateway") == {}


async def test_two_replicas_have_one_leader_and_a_dead_one_is_replaced(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("capacity.act.leader.DURATION_SECONDS", 1)
    monkeypatch.setattr("capacity.act.leader.RENEW_SECONDS", 0.1)
    cluster = FakeCluster()
    electors = [Elector(cluster.kube(), "n", "lease", name) for name in ("one", "two")]
    tasks = [asyncio.create_task(elector.run()) for elector in electors]
    for _ in range(100):
        await asyncio.sleep(0.01)
        assert sum(elector.leading for elector in electors) <= 1
    leader = 0 if electors[0].leading else 1
    electors[leader]._release = lambda: asyncio.sleep(0)  # killed: it gives nothing back
    tasks[leader].cancel()
    assert await until(lambda: electors[1 - leader].leading and not electors[leader].leading, 4) < 3
    tasks[1 - leader].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert cluster.objects["/apis/coordination.k8s.io/v1/namespaces/n/leases/lease"]["spec"]["holderIdentity"] == ""


def stale(cluster: FakeCluster, renewed: float, low: int) -> Kube:
    target = {"floor": low, "base": 2, "renewed": renewed}
    data = {memories.STATE_KEY: json.dumps({"targets": {"m": target}})}
    cluster.put(STATE, {"metadata": {"name": "state"}, "data": data})
    cluster.put(HPA, {"metadata": {"name": "m"}, "spec": {"minReplicas": low, "maxReplicas": 10}})
    return cluster.kube()


async def test_a_floor_that_nobody_renews_falls_by_one():
    cluster = FakeCluster()
    kube = stale(cluster, time.time() - 700, low=6)
    lines = await memories.expire_floors(kube, "n", 600, MANAGER)
    assert cluster.objects[HPA]["spec"]["minReplicas"] == 5 and "lowered to 5" in lines[0]


@pytest.mark.parametrize(("age", "low"), [(500, 6), (700, 2)])
async def test_a_renewed_floor_or_the_base_stays(age: float, low: int):
    cluster = FakeCluster()
    kube = stale(cluster, time.time() - age, low)
    assert await memories.expire_floors(kube, "n", 600, MANAGER) == []
    assert cluster.objects[HPA]["spec"]["minReplicas"] == low


async def test_memory_survives_a_restart_and_forgets_what_it_cannot_read():
    cluster = FakeCluster()
    cluster.put(STATE, {"metadata": {"name": "state"}})
    kube, memory = cluster.kube(), memories.Memory(history_days=4)
    memory.note_activation("m")
    memory.target("m").active, memory.target("m").watched = 1, 77
    for minute in (1, 2, 3):
        memory.history("m").note(minute, 5.0)
    await memories.save(kube, "n", memory)
    again = await memories.load(kube, "n", history_days=4)
    assert (again.target("m").active, again.target("m").used, again.target("m").watched) == (1, 1, 77)
    assert again.history("m").values == [5.0, 5.0]
    cluster.objects[STATE]["data"][memories.STATE_KEY] = "{"
    assert (await memories.load(kube, "n", history_days=4)).targets == {}
