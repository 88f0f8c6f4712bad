"""28 → 128 pods ahead of a recurring surge. Simulated: nodes (KWOK) and what engines report; real: planner, HPA, scheduler."""

import asyncio
import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from capacity.act.actor import Actor
from capacity.act.memory import Memory
from capacity.config import ControllerConfig, Target
from capacity.controller import Term
from capacity.exposition import EngineSample
from capacity.kube import Access, Kube
from capacity.plan.history import MINUTES_PER_DAY, LoadHistory
from capacity.pods import PodBook, follow
from capacity.samples import SampleBook
from capacity.telemetry import Telemetry
from components.scaling.hpa import behaviour, pods_metric, target
from local.cluster import connect
from local.cluster.addons.kwok import SimulatedPool, remove_simulated_nodes, simulate_nodes
from local.cluster.admin import trust
from local.cluster.api import Api
from local.cluster.layout import layout
from rules.metrics import served
from rules.scaling import Behaviour
from settings.autoscaling import PredictionSettings
from tests.real.conftest import local

NAMESPACE, NAME, CHIP = "moonstack-surge", "surge", "huawei.com/Ascend910"
SELECTOR = {"app": NAME, "app.kubernetes.io/component": "engine"}
LOW, HIGH, PER_POD = 28, 128, 12.0
LEVEL = 20 * PER_POD
"""Load of the quiet minutes: 20 pods, 24 with the margin."""
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
HPA = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/{NAME}"


@pytest.fixture
def api(cluster: Path) -> Iterator[Api]:
    local("addon", "kwok")
    found = connect(layout())
    pool = SimulatedPool(NAME, HIGH // 8 + 1, labels={"gpu.pool": NAME}, chips={CHIP: 8})
    simulate_nodes(found, [pool])
    found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    found.apply(_deployment(), DEPLOYMENTS)
    found.apply(_hpa(), HPA)
    yield found
    for path in (HPA, DEPLOYMENTS):
        found.delete(path)
    remove_simulated_nodes(found, NAME)
    found.delete(f"/api/v1/namespaces/{NAMESPACE}")
    found.close()


async def test_a_surge_that_recurs_finds_128_pods_ready_before_it_comes(api: Api):
    await _until(lambda: _ready(api) == LOW, 60)
    async with asyncio.TaskGroup() as group:
        book = PodBook()
        watching = group.create_task(follow(book, kube := _kube(), NAMESPACE))
        seconds, telemetry = await _surge(api, kube, book)
        watching.cancel()
    assert seconds < 20, seconds
    spec = api.get(HPA)["spec"]
    assert spec["minReplicas"] == HIGH
    assert telemetry.registry.get_sample_value("moonstack_capacity_floor_clamped", {"target": NAME}) == 1
    await kube.close()


async def _surge(api: Api, kube: Kube, book: PodBook) -> tuple[float, Telemetry]:
    """Ticks until all pods are Ready; the seconds from the raised floor until then."""
    config, telemetry, samples = _config(), Telemetry(), SampleBook(60)
    memory = Memory(history_days=4, histories={NAME: _history(int(time.time() // 60))})
    term = Term(config, Actor(kube, NAMESPACE, telemetry), memory, book, samples, telemetry)
    await book.synced.wait()
    raised, deadline = 0.0, time.monotonic() + 120
    while time.monotonic() < deadline:
        ready = [pod for pod in book.all() if pod.ready]
        for pod in ready:
            samples.add(pod, EngineSample(0, LEVEL / len(ready), 0.3), time.monotonic(), time.time())
        await term.tick()
        floor = telemetry.registry.get_sample_value("moonstack_capacity_floor_replicas", {"target": NAME})
        if not raised and floor == HIGH:
            raised = time.monotonic()
        if raised and len(ready) == HIGH:
            return time.monotonic() - raised, telemetry
        await asyncio.sleep(0.2)
    raise AssertionError(f"{_ready(api)} pods after two minutes, floor raised: {bool(raised)}")


def _history(now: int) -> LoadHistory:
    """Two days with a surge to 130 pods' worth that began, each day, in what are now the coming minutes."""
    surge = 130 * PER_POD
    first = now - 2 * MINUTES_PER_DAY - 10
    of_day = [(first + i - now) % MINUTES_PER_DAY for i in range(2 * MINUTES_PER_DAY + 10)]
    return LoadHistory(days=4, first=first, values=[surge if 4 <= minute < 30 else LEVEL for minute in of_day])


def _config() -> ControllerConfig:
    own = Target(
        name=NAME, model=NAME, role="serve", selector=SELECTOR, low=LOW, high=HIGH, scaled=True, requests_per_pod=PER_POD
    )  # fmt: skip
    prediction = PredictionSettings(step_up_pods=HIGH - LOW)
    return ControllerConfig(namespace=NAMESPACE, targets=(own,), prediction=prediction)


def _ready(api: Api) -> int:
    return api.get(DEPLOYMENTS).get("status", {}).get("readyReplicas", 0)


async def _until(condition, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.2)


def _kube() -> Kube:
    return Kube(Access(layout().server, trust()))


def _deployment() -> dict:
    container = {"name": "engine", "image": "simulated", "resources": {"limits": {CHIP: "1"}}}
    spec = {"containers": [container], "nodeSelector": {"gpu.pool": NAME}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": LOW, "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": SELECTOR}, "spec": spec},
        },
    }  # fmt: skip


def _hpa() -> dict:
    """B1's policy: by itself it would take 49 minutes from 28 to 128."""
    up = Behaviour(window_seconds=30, pods=2, period_seconds=60)
    down = Behaviour(window_seconds=300, pods=1, period_seconds=120)
    assert math.ceil((HIGH - LOW) / up.pods) * up.period_seconds / 60 > 45
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": target(NAME), "minReplicas": LOW, "maxReplicas": HIGH,
            "metrics": [pods_metric(served.QUEUE_DEPTH, 10)], "behavior": behaviour(up, down),
        },
    }  # fmt: skip
