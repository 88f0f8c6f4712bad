"""The loop on a real control plane: metric → HPA → pods, burst → warm pod → answer; and what happens when parts die."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bench.loop import routed
from bench.simulated.elastic_stack import (
    API_SERVICE,
    HPA_PATH,
    NAMESPACE,
    SERVE,
    WARM,
    Elastic,
    deployed,
    settings,
    until,
)
from local.cluster.control_plane import HPA_SYNC_SECONDS
from rules.metrics import served
from settings.paths import state_dir
from tests.real.conftest import local
from tests.real.test_doctor_faults import examine

CAPACITY = {"app.kubernetes.io/name": "capacity-controller"}


@pytest.fixture(scope="module")
def elastic(cluster: Path) -> Iterator[Elastic]:
    with deployed() as running:
        yield running


@pytest.fixture(autouse=True)
def calm(elastic: Elastic) -> Iterator[None]:
    yield
    elastic.simulate_all(waiting=0, running=0, kv=0, hang=0)
    until(lambda: len(elastic.engines(SERVE)) == 2 and not routed(elastic), 150, "calm again")


def test_the_hpa_finds_its_metric(elastic: Elastic):
    until(lambda: condition(elastic) == ("True", "ValidMetricFound"), 20)
    assert elastic.get(API_SERVICE)["status"]["conditions"][0]["status"] == "True"
    assert set(elastic.values(served.TTFT).values()) == {0}


def condition(elastic: Elastic) -> tuple[str, str]:
    found = next(c for c in elastic.hpa["status"]["conditions"] if c["type"] == "ScalingActive")
    return found["status"], found["reason"]


def test_every_change_becomes_visible_at_the_api(elastic: Elastic):
    pod = elastic.engines(SERVE)[0]
    for value in range(1, 6):
        elastic.simulate(pod, waiting=value, running=1)
        until(lambda value=value: elastic.values()[pod] == value, 10)


def test_a_burst_is_answered_by_the_warm_pod_and_raises_the_floor(elastic: Elastic):
    warm = elastic.engines(WARM)[0]
    assert elastic.answered_by() != warm
    for pod in elastic.engines(SERVE):
        elastic.simulate(pod, waiting=30, running=12)
    until(lambda: elastic.answered_by() == warm, 20, "an answer of the warm pod")
    until(lambda: elastic.hpa["spec"]["minReplicas"] >= 3, 10, "the floor rises")
    owners = {
        m["manager"]: m["fieldsV1"] for m in elastic.hpa["metadata"]["managedFields"] if m["operation"] == "Apply"
    }
    assert owners["moonstack-capacity"] == {"f:spec": {"f:minReplicas": {}}}
    until(lambda: len(elastic.engines(SERVE)) >= 3, 40, "the HPA adds engines")
    elastic.simulate_all(waiting=0, running=0)
    until(lambda: not routed(elastic), 40, "the warm pod goes back")
    assert warm not in {elastic.answered_by() for _ in range(12)}


def test_desired_replicas_follow_the_metric(elastic: Elastic):
    for pod in elastic.engines(SERVE):
        elastic.simulate(pod, waiting=15, running=12)
    until(lambda: min(elastic.values().values()) == 15, 5)
    until(lambda: elastic.hpa["status"]["desiredReplicas"] >= 3, 20)


def test_a_scaler_that_may_not_have_what_it_wants_is_named_by_the_doctor(elastic: Elastic):
    assert "scaler-at-maximum" not in named()
    allow(elastic, 3)
    try:
        for pod in elastic.engines(SERVE):
            elastic.simulate(pod, waiting=25, running=12)
        until(lambda: "scaler-at-maximum" in named(), 30, "the doctor names the scaler")
    finally:
        allow(elastic, 5)


def allow(elastic: Elastic, most: int) -> None:
    """Set how many engines the scaler may have."""
    kind = {"content-type": "application/merge-patch+json"}
    elastic.http.patch(HPA_PATH, json={"spec": {"maxReplicas": most}}, headers=kind).raise_for_status()


def named() -> set[str]:
    """What the doctor says of the stack."""
    return {one.id for one in examine(settings())}


def test_a_killed_leader_is_replaced_and_replicas_hold(elastic: Elastic):
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/capacity-controller"
    leader = elastic.get(lease)["spec"]["holderIdentity"]
    before = elastic.hpa["status"]["desiredReplicas"]
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{leader}"
    elastic.http.request("DELETE", path, json={"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    seen = set()
    started = time.monotonic()
    while time.monotonic() - started < 14:
        seen.add(elastic.hpa["status"]["desiredReplicas"])
        time.sleep(0.5)
    assert seen == {before}
    until(lambda: elastic.get(lease)["spec"]["holderIdentity"] not in ("", leader), 15, "a new leader")
    assert len(elastic.values()) == 2
    warm = elastic.engines(WARM)[0]
    for pod in elastic.engines(SERVE):
        elastic.simulate(pod, waiting=30, running=12)
    until(lambda: elastic.answered_by() == warm, 10, "the new leader acts")


def test_a_namespace_can_be_deleted_while_one_replica_is_gone(elastic: Elastic):
    elastic.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elastic-passing"}})
    replica = elastic.pods(**CAPACITY)[0]["metadata"]["name"]
    elastic.http.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{replica}")
    elastic.http.delete("/api/v1/namespaces/elastic-passing")
    until(lambda: elastic.http.get("/api/v1/namespaces/elastic-passing").status_code == 404, 30, "deleted")


def test_a_namespace_deleted_while_the_whole_adapter_is_gone_goes_once_it_is_back_and_replicas_hold(elastic: Elastic):
    """Discovery of our group fails meanwhile, which holds up every namespace's end: it must not for longer than a restart."""
    before = elastic.hpa["spec"]["minReplicas"], elastic.hpa["status"]["desiredReplicas"]
    elastic.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elastic-passing"}})
    for replica in elastic.pods(**CAPACITY):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{replica['metadata']['name']}"
        elastic.http.request("DELETE", path, json={"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    elastic.http.delete("/api/v1/namespaces/elastic-passing")
    until(lambda: len(elastic.values()) == 2, 60, "metrics of both engines again")
    until(lambda: elastic.http.get("/api/v1/namespaces/elastic-passing").status_code == 404, 90, "deleted")
    assert (elastic.hpa["spec"]["minReplicas"], elastic.hpa["status"]["desiredReplicas"]) == before
    assert not routed(elastic)


def test_a_hanging_engine_and_a_lying_one_move_nothing(elastic: Elastic):
    hanging, lying = elastic.engines(SERVE)
    until(lambda: "metric-not-served" not in named(), 60, "the HPA finds its metric again, whatever died before")
    before = elastic.hpa["spec"]["minReplicas"], elastic.hpa["status"]["desiredReplicas"]
    elastic.simulate(hanging, hang=1)
    elastic.simulate(lying, waiting=1e9, running=12)
    until(lambda: elastic.values() == {}, 25, "neither is reported")
    time.sleep(2 * HPA_SYNC_SECONDS)
    assert (elastic.hpa["spec"]["minReplicas"], elastic.hpa["status"]["desiredReplicas"]) == before
    assert not routed(elastic)
    elastic.simulate(hanging, hang=0, waiting=1e9, running=12)  # else the doctor would wait for its page
    until(lambda: "metric-not-served" in named(), 20, "the doctor names the metric")


def test_an_api_server_that_is_killed_and_comes_back_moves_nothing(elastic: Elastic):
    before = elastic.hpa["spec"]["minReplicas"], elastic.hpa["status"]["desiredReplicas"]
    record = json.loads((state_dir() / "processes" / "kube-apiserver.json").read_text())
    os.kill(record["pid"], signal.SIGKILL)
    local("up")
    until(lambda: len(elastic.values()) == 2, 60, "metrics of both engines again")
    time.sleep(2 * HPA_SYNC_SECONDS)
    assert (elastic.hpa["spec"]["minReplicas"], elastic.hpa["status"]["desiredReplicas"]) == before
    assert not routed(elastic)
    warm = elastic.engines(WARM)[0]
    for pod in elastic.engines(SERVE):
        elastic.simulate(pod, waiting=30, running=12)
    until(lambda: elastic.answered_by() == warm, 60, "controller and router go on")


def test_the_controllers_rights_end_at_its_own_labels(elastic: Elastic):
    """A right to patch pods is a right to change images, without the admission policy."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{elastic.engines(WARM)[0]}"
    user = {"Impersonate-User": f"system:serviceaccount:{NAMESPACE}:capacity-controller"}

    def patch(body: dict) -> httpx.Response:
        return elastic.http.patch(
            path, json=body, headers={**user, "content-type": "application/strategic-merge-patch+json"}
        )

    assert patch({"metadata": {"labels": {"ready": "false"}}}).status_code == 200
    for body in (
        {"spec": {"containers": [{"name": "engine", "image": "other"}]}},
        {"metadata": {"labels": {"moonstack.dev/model": "other"}}},
        {"metadata": {"labels": {"app.kubernetes.io/name": None}}},
        {"metadata": {"annotations": {"other": "x"}}},
    ):
        refused = patch(body)
        assert refused.status_code == 422 and "the capacity controller may not change" in refused.text, (
            body,
            refused.text,
        )
    assert elastic.http.delete(path, headers=user).status_code == 403
    assert (
        elastic.http.patch(
            HPA_PATH.replace(SERVE, "other"), json={}, headers={**user, "content-type": "application/merge-patch+json"}
        ).status_code
        == 403
    )
