"""Scalers and a warm decode pod turned on in the running dev stack: real engines, router and gateway, by `pulumi up`."""

import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import pytest

from bench.changed_dev import Groups, changed_dev, deploy
from bench.small_model import more_chips
from local.cluster.admin import client
from rules import labels, names, ports
from tests.real.conftest import DevStack

USERS, SECONDS = 6, 25
OVERRIDES: dict[str, Any] = {
    "moonstack:autoscaling": {
        "gateway": {"enabled": False},
        "engines": {
            "enabled": True,
            "runningRequests": 2,
            "roles": {"prefill": {"minReplicas": 2, "maxReplicas": 2}, "decode": {"minReplicas": 1, "maxReplicas": 1}},
            "prediction": {"enabled": False, "requestsPerPod": 2},
        },
    },
    "moonstack:warmPool": {
        "enabled": True, "roles": ["decode"], "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "calmSeconds": 8,
    },
    "moonstack:smokeSkip": True,
}  # fmt: skip
"""Five engines at most. The gate is skipped: dev passed it, and what changes is measured here."""


@dataclass
class Load:
    """Users who ask again as soon as they have an answer."""

    stack: DevStack
    started: float = 0.0
    answered: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Load":
        self.started = time.monotonic()
        self._threads = [threading.Thread(target=self._user, args=(number,)) for number in range(USERS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _user(self, number: int) -> None:
        trust = ssl.create_default_context(cafile=str(self.stack.ca))
        headers = {"authorization": f"Bearer {self.stack.key('dev-client')}"}
        with httpx.Client(base_url=self.stack.endpoint, verify=trust, headers=headers, timeout=60) as http:
            while not self._stop.is_set():
                text = f"user {number} at {time.monotonic()}"
                body = {
                    "model": self.stack.settings.models[0].name,
                    "messages": [{"role": "user", "content": text}],
                    "max_tokens": 16,
                }
                answer = http.post("/v1/chat/completions", json=body)
                self.answered += answer.status_code == 200
                if answer.status_code != 200:
                    self.failed.append(f"{answer.status_code} {answer.text[:200]}")


@pytest.fixture(scope="module")
def elastic(dev_stack: DevStack) -> Iterator[DevStack]:
    with changed_dev(_scale):
        yield dev_stack


def _scale(config: Groups) -> None:
    more_chips(config)
    config |= OVERRIDES


def get(path: str, **parameters: str) -> httpx.Response:
    with client() as api:
        return api.get(path, params=parameters).raise_for_status()


def pods(stack: DevStack, deployment: str) -> list[dict[str, Any]]:
    path = f"/api/v1/namespaces/{stack.namespace}/pods"
    return get(path, labelSelector=f"app.kubernetes.io/name={deployment}").json()["items"]


def deployments(stack: DevStack) -> tuple[str, str, str]:
    model, pool = stack.settings.models[0].name, stack.settings.node_pools[0].name
    return names.engine(model, "prefill", pool), names.engine(model, "decode", pool), names.warm(model, "decode", pool)


def cold_start_seconds(pod: dict[str, Any]) -> float:
    ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    stamps = (pod["metadata"]["creationTimestamp"], ready["lastTransitionTime"])
    created, became = (datetime.fromisoformat(stamp.replace("Z", "+00:00")) for stamp in stamps)
    return (became - created).total_seconds()


def test_turning_scalers_on_restarts_nothing_and_keeps_replicas(dev_stack: DevStack, request: pytest.FixtureRequest):
    before = {pod["metadata"]["uid"] for name in deployments(dev_stack)[:2] for pod in pods(dev_stack, name)}
    stack = request.getfixturevalue("elastic")
    after = {pod["metadata"]["uid"] for name in deployments(stack)[:2] for pod in pods(stack, name)}
    assert before == after and len(after) == 3


def test_a_burst_is_answered_by_the_warm_pod_and_no_request_is_lost(elastic: DevStack):
    warm = pods(elastic, deployments(elastic)[2])[0]
    cold, name = cold_start_seconds(warm), warm["metadata"]["name"]
    until(lambda: not routed(elastic, name), 60)
    before = success(elastic, name)
    with Load(elastic) as load:
        until(lambda: routed(elastic, name), 20)
        decided = time.monotonic()
        until(lambda: success(elastic, name) > before, 20)
        answered = time.monotonic()
        time.sleep(max(0.0, SECONDS - (answered - load.started)))
    until(lambda: not routed(elastic, name), 60)
    settled = success(elastic, name)
    with Load(elastic) as after:
        time.sleep(1)
    figures = {
        "burst to warm answer": round(answered - load.started, 2),
        "decision to warm answer": round(answered - decided, 2),
        "cold start": cold,
        "answers": load.answered,
    }
    print(figures)
    assert load.failed == [] and after.failed == [] and load.answered > 20, (load.failed[:3], figures)
    assert success(elastic, name) == settled, "a resting pod was asked"
    assert answered - decided < cold, figures


def test_a_second_up_changes_nothing_though_the_controller_writes_too(elastic: DevStack):
    """Certificates, floors, replicas and the controller's memory are not the program's to reset."""
    deploy("--expect-no-changes")


def success(stack: DevStack, pod: str) -> float:
    """Requests that an engine has finished."""
    page = get(f"/api/v1/namespaces/{stack.namespace}/pods/{pod}:{ports.ENGINE}/proxy/metrics").text
    return sum(
        float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith("vllm:request_success_total")
    )


def routed(stack: DevStack, pod: str) -> bool:
    found = get(f"/api/v1/namespaces/{stack.namespace}/pods/{pod}").json()
    return found["metadata"]["labels"].get(labels.ROUTED) == "true"


def until(condition: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)
