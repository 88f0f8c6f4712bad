"""Tokens of whole answers: read from the top level's `usage`, under the names of chat and of responses, wherever else the word stands."""

import json

import pytest

from tests.envoy.stacks import ASK, CHAT, stack
from tests.envoy.upstream import Upstream
from tests.envoy.waiting import wait_for

DETAILS = {"prompt_tokens_details": {"prompt_tokens": 999}, "prompt_tokens": 21, "completion_tokens": 5}
ANSWERS = (
    ({"choices": [{"usage": {"prompt_tokens": 1}, "text": '"usage":{"prompt_tokens":2}'}], "usage": DETAILS}, 21, 5),
    ({"usage": {"input_tokens": 12, "output_tokens": 3}, "output": [{"usage": {"input_tokens": 1}}]}, 12, 3),
    ({"name": "usage", "choices": [{"usage": {"prompt_tokens": 1}}]}, 0, 0),
    ({"usage": {"prompt_tokens": 8}, "data": [0.5] * 9000}, 8, 0),
)


@pytest.mark.parametrize(("answer", "into", "out"), ANSWERS)
def test_tokens_are_those_of_the_top_level(make, start, answer: dict, into: int, out: int):
    router = start(Upstream("router", fault=200, said=json.dumps(answer)))
    gateway = make(stack(), {"chat": router.port})
    with gateway.client() as client:
        client.post(CHAT, json=ASK)
    wait_for(lambda: '"status":200' in gateway.access_log())
    line = next(json.loads(line) for line in gateway.access_log().splitlines() if '"model":"chat"' in line)
    assert (line["tokens_in"] or 0, line["tokens_out"] or 0) == (into, out)
