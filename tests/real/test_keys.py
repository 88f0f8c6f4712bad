"""Keys on the running dev stack: a rotation under load loses nothing, an expired key is refused, the audit finds what is planted."""

import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from settings.key_values.local import LocalKeys
from tests.policies.builders import fake_key
from tests.real.conftest import DevStack, kubectl, run

KEY = "dev-client"
OTHER = "dev-limit"
REFUSED_WITHIN = 60
"""Seconds from a key's end to its 401."""


@pytest.fixture
def ask(dev_stack: DevStack) -> Iterator[Callable[[str], int]]:
    """Status of GET /v1/models with a key."""
    trust = ssl.create_default_context(cafile=str(dev_stack.ca))
    with httpx.Client(base_url=dev_stack.endpoint, verify=trust, timeout=10, trust_env=False) as client:
        yield lambda value: client.get("/v1/models", headers={"authorization": f"Bearer {value}"}).status_code


@contextmanager
def load(ask: Callable[[str], int]) -> Iterator[list[int]]:
    """A client that uses the owner's current key all the time; yields the statuses that it saw."""
    seen: list[int] = []
    over = threading.Event()

    def client() -> None:
        while not over.is_set():
            try:
                seen.append(ask(LocalKeys().path(KEY).read_text()))
            except httpx.HTTPError:
                seen.append(0)
            time.sleep(0.05)

    thread = threading.Thread(target=client)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def wait_for(status: int, ask: Callable[[], int], seconds: float) -> float:
    """Seconds until the status is seen. Fails when it isn't in time."""
    start = time.monotonic()
    while (last := ask()) != status:
        assert time.monotonic() - start < seconds, f"still {last} after {seconds:.0f} s"
        time.sleep(0.5)
    return time.monotonic() - start


def test_a_rotation_under_load_loses_no_request_and_drops_the_old_key(dev_stack, ask):
    old = dev_stack.key(KEY)
    with load(ask) as seen:
        done = run(sys.executable, "-m", "rotation", "--stack", "dev", "--id", KEY, "--force", timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    new = dev_stack.key(KEY)
    assert new != old
    assert len(seen) > 50
    assert set(seen) == {200}, f"{sum(status != 200 for status in seen)} of {len(seen)} failed"
    wait_for(401, lambda: ask(old), REFUSED_WITHIN)
    assert ask(new) == 200
    assert old not in done.stdout + done.stderr
    assert new not in done.stdout + done.stderr


def test_an_expired_key_is_refused_within_a_minute_without_a_deployment(dev_stack, ask):
    value = dev_stack.key(OTHER)
    before = _agent_config(dev_stack)
    end = datetime.now(UTC) + timedelta(seconds=20)
    keys = [key | ({"expires": end.isoformat()} if key["id"] == OTHER else {}) for key in before["keys"]]
    try:
        _restart_agent(dev_stack, before | {"keys": keys})
        assert ask(value) != 401, "not expired yet"
        time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds()))
        took = wait_for(401, lambda: ask(value), REFUSED_WITHIN)
        print(f"an expired key was refused {took:.1f} s after its end")
    finally:
        _restart_agent(dev_stack, before)
    wait_for(200, lambda: ask(dev_stack.key(KEY)), 10)
    start = time.monotonic()
    while ask(value) == 401:
        assert time.monotonic() - start < REFUSED_WITHIN, "the key did not come back"
        time.sleep(0.5)


def test_the_running_stack_is_clean_and_a_planted_canary_is_found(dev_stack, ask, tmp_path):
    canary, report = fake_key(), tmp_path / "audit.json"
    audit = [sys.executable, "-m", "policies", "audit", "--stack", "dev", "--json", str(report)]
    done = run(*audit, check=False)
    document = json.loads(report.read_text())
    assert done.returncode == 0, document
    assert all(one["items"] for one in document["looked"])
    namespace = dev_stack.namespace
    try:
        kubectl("create", "configmap", "--namespace", namespace, "canary", f"--from-literal=file=key {canary}")
        kubectl("annotate", "service", "--namespace", namespace, "gateway", f"canary={canary}")
        httpx.get(f"{dev_stack.endpoint}/v1/{canary}", verify=ssl.create_default_context(cafile=str(dev_stack.ca)))
        done = run(*audit, check=False)
    finally:
        kubectl("delete", "configmap", "--namespace", namespace, "canary", check=False)
        kubectl("annotate", "service", "--namespace", namespace, "gateway", "canary-", check=False)
    document = json.loads(report.read_text())
    assert done.returncode == 1
    found = {(one["place"], one["where"].partition("/")[0]) for one in document["findings"]}
    assert {("cluster: objects", "ConfigMap canary"), ("cluster: objects", "Service gateway")} <= found
    assert canary not in done.stdout + done.stderr + report.read_text()


def _agent_config(dev_stack: DevStack) -> dict[str, Any]:
    said = kubectl("get", "configmap", "--namespace", dev_stack.namespace, "key-agent-config", "--output", "json")
    return json.loads(json.loads(said)["data"]["config.json"])


def _restart_agent(dev_stack: DevStack, config: dict[str, Any]) -> None:
    """A new pod reads the new configuration at once; a running one would see it only when it restarts."""
    patch = json.dumps({"data": {"config.json": json.dumps(config)}})
    space = ["--namespace", dev_stack.namespace]
    kubectl("patch", "configmap", *space, "key-agent-config", "--type", "merge", "--patch", patch)
    kubectl("delete", "pod", *space, "--selector", "app.kubernetes.io/name=key-agent", "--wait=true")
    kubectl("rollout", "status", *space, "deployment/key-agent", "--timeout=60s")
