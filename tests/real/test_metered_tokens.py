"""A key with a quota is counted as the engines count, though its caller hides the usage or leaves in the middle of a stream."""

import json
import math
import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from bench.changed_dev import Groups, changed_dev
from rules import names, ports
from tests.real.conftest import DevStack, kubectl

CLIENT = "dev-client"
BYTES_A_TOKEN = 4
"""By which a prompt is counted whose answer ends without its usage (docs/gateway.md)."""
READ = 5
"""Events after which a caller leaves."""


@dataclass(frozen=True)
class Tokens:
    """Tokens in and out."""

    into: int
    out: int

    def __sub__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.into - other.into, self.out - other.out)


@pytest.fixture(scope="module")
def metered(dev_stack: DevStack) -> Iterator[DevStack]:
    """dev with a quota for its client that nobody uses up; afterwards dev as it was."""
    with changed_dev(_add_quota):
        yield dev_stack


def _add_quota(config: Groups) -> None:
    key = next(key for key in config["moonstack:keys"]["keys"] if key["id"] == CLIENT)
    key["tokensPerDay"] = 10_000_000


def metrics(stack: DevStack, selector: str, port: int, path: str) -> str:
    """The metrics of all running pods of a selector, one after another."""
    listed = json.loads(kubectl("-n", stack.namespace, "get", "pods", "-l", selector, "-o", "json"))["items"]
    assert listed, f"no pod has the labels {selector}"
    pods = [pod["metadata"]["name"] for pod in listed]
    proxies = [f"/api/v1/namespaces/{stack.namespace}/pods/{pod}:{port}/proxy{path}" for pod in pods]
    return "\n".join(kubectl("get", "--raw", proxy) for proxy in proxies)


def total(text: str, pattern: str) -> int:
    return round(sum(float(value) for value in re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE)))


def gateway_counts(stack: DevStack) -> Tokens:
    """What the gateway has counted for the client."""
    text = metrics(stack, f"moonstack.dev/part={names.GATEWAY}", ports.GATEWAY_METRICS, "/stats/prometheus")
    counted = [
        total(text, rf'envoy_moonstack_{kind}_tokens\{{[^}}]*client="{CLIENT}"[^}}]*\}}')
        for kind in ("prompt", "completion")
    ]
    return Tokens(*counted)


def engine_counts(stack: DevStack) -> Tokens:
    """What the engines that answer have counted: a prefill engine makes one more token of each prompt, which nobody is told of."""
    model = names.slug(stack.settings.models[0].name)
    text = metrics(stack, f"moonstack.dev/model={model},moonstack.dev/role=decode", ports.ENGINE, "/metrics")
    assert total(text, r"vllm:num_requests_running\{.*\}") == 0
    return Tokens(*(total(text, rf"vllm:{kind}_tokens_total\{{.*\}}") for kind in ("prompt", "generation")))


def settled(read: Callable[[], Tokens], before: Tokens) -> Tokens:
    """What has been added since, once it has changed and stays for two seconds."""
    last, deadline = before, time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(2)
        try:
            now = read()
        except AssertionError:
            continue
        if now != before and now == last:
            return now - before
        last = now
    raise AssertionError(f"nothing was counted in a minute: {last}")


def stream(stack: DevStack, leave_after: int | None, **more: Any) -> tuple[bytes, list[str]]:
    """The body that was sent and the events that came."""
    prompt = " ".join([f"Case {uuid.uuid4().hex}: tell a long story."] + ["It rained all day in the town."] * 8)
    body = json.dumps(
        {
            "model": stack.settings.models[0].name,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "stream": True,
            "ignore_eos": True,
            **more,
        }
    ).encode()
    headers = {"Authorization": f"Bearer {stack.key(CLIENT)}", "Content-Type": "application/json"}
    url = f"{stack.endpoint}/v1/chat/completions"
    events = []
    with httpx.stream("POST", url, content=body, headers=headers, verify=str(stack.ca), timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                events.append(line)
            if leave_after and len(events) >= leave_after:
                break
    return body, events


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}], ids=["absent", "false"])
def test_a_stream_that_hides_its_usage_is_counted_as_the_engine_counts(metered: DevStack, options: dict[str, Any]):
    counted, made = gateway_counts(metered), engine_counts(metered)
    _, events = stream(metered, None, max_tokens=24, **options)
    assert not any(json.loads(line.removeprefix("data: ")).get("usage") for line in events)
    of_engine = settled(lambda: engine_counts(metered), made)
    assert of_engine.out == 24
    assert settled(lambda: gateway_counts(metered), counted) == of_engine


def test_a_stream_that_its_caller_leaves_is_counted_within_the_documented_bounds(metered: DevStack):
    counted, made = gateway_counts(metered), engine_counts(metered)
    body, events = stream(metered, READ, max_tokens=3000)
    of_engine = settled(lambda: engine_counts(metered), made)
    of_gateway = settled(lambda: gateway_counts(metered), counted)
    assert of_gateway.into == math.ceil(len(body) / BYTES_A_TOKEN)
    assert of_gateway.into >= of_engine.into / BYTES_A_TOKEN
    assert (
        len(events) <= of_gateway.out <= of_engine.out + 1
    )  # the first event of a chat names the role and has no token
    assert of_engine.out < 3000
