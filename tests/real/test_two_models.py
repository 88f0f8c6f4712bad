"""Two models on one Mooncake store, one with prefill and decode, one aggregated: same tokenizer, other weights."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from bench.changed_dev import Groups, changed_dev
from rules import names
from smoke.prompts import prefix
from tests.real.conftest import DevStack, kubectl

OTHER = "dev-wide-b"
HITS = "vllm:external_prefix_cache_hits_total"


@pytest.fixture(scope="module")
def both(dev_stack: DevStack) -> Iterator[DevStack]:
    """dev with a second, aggregated model; afterwards dev as it was."""
    with changed_dev(_add_model):
        yield dev_stack


def _add_model(config: Groups) -> None:
    models = config["moonstack:models"]
    first = models[0]
    models.append(
        {
            "name": OTHER,
            "shape": "aggregated",
            "weights": first["weights"] | {"location": OTHER},
            "engine": first["engine"],
            "connector": first["connector"],
            "serve": first["decode"] | {"replicas": 1},
            "router": {"replicas": 1},
            "longestRequestSeconds": first["longestRequestSeconds"],
        }
    )


def ask(stack: DevStack, model: str, text: str, **more: Any) -> str:
    """The greedy answer of a model."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 16,
        "temperature": 0,
        **more,
    }
    headers = {"Authorization": f"Bearer {stack.key('dev-client')}"}
    reply = httpx.post(
        f"{stack.endpoint}/v1/chat/completions", json=body, headers=headers, verify=str(stack.ca), timeout=60
    )
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["message"]["content"]


def hits(stack: DevStack, model: str) -> float:
    """Tokens that the model's engines found in the store."""
    selector = f"moonstack.dev/model={names.slug(model)},moonstack.dev/role"
    pods = json.loads(kubectl("-n", stack.namespace, "get", "pods", "-l", selector, "-o", "json"))["items"]
    total = 0.0
    for pod in pods:
        path = f"/api/v1/namespaces/{stack.namespace}/pods/{pod['metadata']['name']}:8000/proxy/metrics"
        lines = kubectl("get", "--raw", path).splitlines()
        total += sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(HITS + "{"))
    return total


def test_a_model_never_reads_what_another_with_the_same_tokenizer_has_stored(both: DevStack):
    prompts = [f"{prefix(400, uuid.uuid4().hex)} What follows?" for _ in range(2)]
    first = [ask(both, "dev-wide", prompt) for prompt in prompts]
    before = hits(both, OTHER)
    second = [ask(both, OTHER, prompt) for prompt in prompts]
    assert hits(both, OTHER) == before
    assert second == [ask(both, OTHER, prompt, cache_salt=uuid.uuid4().hex) for prompt in prompts]
    assert first != second


def test_each_model_answers_by_its_own_name(both: DevStack):
    headers = {"Authorization": f"Bearer {both.key('dev-client')}"}
    listed = httpx.get(f"{both.endpoint}/v1/models", headers=headers, verify=str(both.ca), timeout=10).json()
    assert {"dev-wide", OTHER} <= {model["id"] for model in listed["data"]}
