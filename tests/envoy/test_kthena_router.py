"""Kthena's router (1.0) behind the gateway: its own errors, as measured on its binary, say what the caller may expect."""

import pytest

from tests.envoy.stacks import ASK, CHAT, MODEL, stack
from tests.envoy.upstream import Upstream
from tests.envoy.world import TWIN

KTHENA = ({**MODEL, "backend": "kthena"},)
ALIAS = {"models": [TWIN], "fallback": {"order": ["moe-expert-a"]}}
HALF = {**TWIN, "weight": 0.5}
OTHER = {**HALF, "alias": "moe-expert-b", "modelName": "elsewhere", "inCluster": None}
ALIASES = {"models": [HALF, OTHER], "fallback": {"order": ["moe-expert-a", "moe-expert-b"]}}
OUT_OF_REACH = (
    (404, '"route not found"'),
    (404, '"can\'t find model server: moonstack/chat"'),
    (400, '"can\'t schedule to target pod: no decode pod found"'),
    (404, '"request to all pods failed""request processing failed"'),
    (500, '"all prefill/decode attempts failed""request processing failed"'),
)


@pytest.mark.parametrize(("status", "said"), OUT_OF_REACH)
def test_engines_out_of_reach_are_a_reason_to_try_elsewhere(world, status: int, said: str):
    this = world(models=KTHENA, channelModels=ALIASES)
    this.router.fault, this.router.said = status, said
    for model, target in (("chat", "channel/MiniMax-M2.5"), ("moe-expert-a", "channel/elsewhere")):
        answer = this.ask(model)
        assert (answer.status_code, answer.headers.get("x-moonstack-served-by")) == (200, target)


@pytest.mark.parametrize("model", ["chat", "moe-expert-a"])
def test_without_another_place_they_are_503_in_the_apis_own_form(make, start, model: str):
    router = start(Upstream("kthena", fault=404, said=OUT_OF_REACH[3][1]))
    gateway = make(stack(models=KTHENA, channelModels=ALIAS), {"chat": router.port})
    with gateway.client() as client:
        answer = client.post(CHAT, json={**ASK, "model": model})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_unavailable")
    assert "request to all pods failed" in answer.json()["error"]["message"]


def test_a_request_without_a_prompt_is_the_callers_mistake(world):
    this = world(models=KTHENA)
    this.router.fault, this.router.said = 404, '"prompt not found"'
    answer = this.ask()
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert len(this.router.seen) == 1 and this.channel.seen == []


def test_the_routers_own_limit_is_429_in_the_apis_own_form(make, start):
    router = start(Upstream("kthena", fault=429, said='"input token rate limit exceeded"'))
    gateway = make(stack(models=KTHENA), {"chat": router.port})
    with gateway.client() as client:
        answer = client.post(CHAT, json=ASK)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")


def test_an_engines_own_refusal_passes_as_it_is(world):
    this = world(models=KTHENA)
    this.router.fault = 404
    answer = this.ask()
    assert (answer.status_code, answer.json()) == (404, {"error": {"message": "fault of router"}})
    assert len(this.router.seen) == 1


def test_prompts_that_engines_refuse_do_not_close_the_router_for_others(world):
    this = world(models=KTHENA)
    this.router.fault, this.router.said = OUT_OF_REACH[4]
    assert {this.ask().headers["x-moonstack-served-by"] for _ in range(6)} == {"channel/MiniMax-M2.5"}
    this.router.fault = None
    assert this.ask().headers["x-moonstack-served-by"] == "cluster/chat"


def test_a_router_that_is_gone_is_left_out(world):
    this = world(models=KTHENA)
    this.router.stop()
    assert {this.ask().headers["x-moonstack-served-by"] for _ in range(4)} == {"channel/MiniMax-M2.5"}
