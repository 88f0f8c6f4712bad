"""New weights under load: every request is answered, by old or new weights and never by a mixture, and no engine reads the old ones' KV."""

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml

from bench.changed_dev import Groups, changed_dev, deploy
from bench.small_model import MODEL, small_model
from local.cluster.api import wait_until
from local.workspace import LOCAL_STACK, workspace
from rules import labels, names, ports
from smoke.prompts import prefix
from tests.real.conftest import DevStack, kubectl
from tests.real.test_two_models import ask, hits

NEW = "dev-tiny-b"
USERS = 3
PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def old(dev_stack: DevStack) -> Iterator[DevStack]:
    """dev with one engine of the small model that shares KV through the store; afterwards dev as it was."""

    def sharing(config: Groups) -> None:
        small_model(config)
        config["moonstack:models"][-1] |= {"connector": "mooncake-store"}

    with changed_dev(sharing):
        wait_until(lambda: answers(dev_stack), "the gateway's first look at the new model's routers", PATIENCE_SECONDS)
        yield dev_stack


def test_new_weights_rolled_under_load_answer_as_themselves_and_read_no_kv_of_the_old(old: DevStack):
    prompts = [f"{prefix(120, uuid.uuid4().hex)} What follows?" for _ in range(USERS)]
    before = [answer(old, prompt) for prompt in prompts]
    old_pods, old_identity = engines(old)
    stored = keys_of(old, old_identity)
    assert stored, "the old engine has stored nothing: the test would prove nothing"

    with users(old, prompts) as (asked, stop):
        roll(NEW)
        wait_until(lambda: engines(old)[0].isdisjoint(old_pods), "the old engine's end", PATIENCE_SECONDS)
        stop.set()
    new_pods, new_identity = engines(old)
    assert new_identity != old_identity and new_pods.isdisjoint(old_pods)
    assert keys_of(old, old_identity), "the old KV is still there to be read"
    assert keys_of(old, new_identity), "the new engine shares its own"
    assert hits(old, MODEL) == 0, "the new engine has found something, and nobody but the old one could have stored it"

    golden = [answer(old, prompt, cache_salt=uuid.uuid4().hex) for prompt in prompts]
    assert all(new != one for new, one in zip(golden, before, strict=True))
    assert [answer(old, prompt) for prompt in prompts] == golden
    answers = [future.result() for future in asked]
    for said, one, new in zip(answers, before, golden, strict=True):
        assert set(said) <= {one, new}, "an answer of neither the old nor the new weights"
        assert {one, new} <= set(said), "the load did not span the rollout"


def answers(stack: DevStack) -> bool:
    """The gate, which would have waited for it, is skipped."""
    try:
        return bool(answer(stack, "Hello?"))
    except AssertionError:
        return False


def answer(stack: DevStack, prompt: str, **more: Any) -> str:
    """The small model's greedy answer, short: the longer, the likelier two tokens are so close that batching decides."""
    return ask(stack, MODEL, prompt, max_tokens=8, **more)


@contextmanager
def users(stack: DevStack, prompts: list[str]) -> Iterator[tuple[list[Future[list[str]]], Event]]:
    """One user a prompt, who asks it over and over; each answer must come, and all of them are kept."""
    stop = Event()

    def user(prompt: str) -> list[str]:
        said: list[str] = []
        while not stop.is_set():
            said.append(answer(stack, prompt))
            time.sleep(0.3)
        said.append(answer(stack, prompt))
        return said

    with ThreadPoolExecutor(len(prompts)) as pool:
        try:
            yield [pool.submit(user, prompt) for prompt in prompts], stop
        finally:
            stop.set()


def roll(location: str) -> None:
    """The small model's weights are others; the stack file is put back by `changed_dev`."""
    path = Path(workspace(LOCAL_STACK).folder) / f"Pulumi.{LOCAL_STACK}.yaml"
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    document["config"]["moonstack:models"][-1]["weights"]["location"] = location
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    deploy()


def engines(stack: DevStack) -> tuple[set[str], str]:
    """Names of the small model's engine pods, and the KV identity of the newest."""
    selector = f"{labels.MODEL}={names.slug(MODEL)},{labels.ROLE}"
    sort = "--sort-by=.metadata.creationTimestamp"
    pods = json.loads(kubectl("-n", stack.namespace, "get", "pods", "-l", selector, sort, "-o", "json"))["items"]
    return {pod["metadata"]["name"] for pod in pods}, pods[-1]["metadata"]["annotations"][labels.KV_IDENTITY]


def keys_of(stack: DevStack, identity: str) -> list[str]:
    """The store's keys of one KV identity, as the master lists them."""
    selector = f"app.kubernetes.io/name={names.KV_MASTER}"
    pods = json.loads(kubectl("-n", stack.namespace, "get", "pods", "-l", selector, "-o", "json"))["items"]
    path = f"/api/v1/namespaces/{stack.namespace}/pods/{pods[0]['metadata']['name']}"
    keys = kubectl("get", "--raw", f"{path}:{ports.KV_MASTER_METRICS}/proxy/get_all_keys")
    return [key for key in keys.split() if identity in key]
