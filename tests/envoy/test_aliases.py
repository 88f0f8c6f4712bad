"""Aliases and their group: order of fallback, routing strategies, load threshold."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.envoy.stacks import ASK, CHAT, MODEL, POOL, stack
from tests.envoy.upstream import Upstream
from tests.envoy.world import World

MODELS = tuple({**MODEL, "name": name} for name in ("one", "two", "three", "four"))


def aliases(**overrides: Any) -> dict[str, Any]:
    """Four aliases `moe-expert-a` to `d` of the models one to four; overrides by letter."""
    entries = [
        {
            "alias": f"moe-expert-{letter}", "modelName": f"Outside-{name}", "inCluster": name,
            "maxTokens": 64, "temperature": 0.5, "weight": weight, "chipAffinity": ["ascend"],
        } | overrides.get(letter, {})
        for letter, name, weight in zip("abcd", ("one", "two", "three", "four"), (0.3, 0.3, 0.2, 0.2), strict=True)
    ]  # fmt: skip
    return {"models": entries}


@pytest.fixture
def four(start, make):
    """A gateway without a channel before four models, each with its own routers."""

    def build(moe: dict[str, Any] | None = None, names: dict[str, Any] | None = None, **settings: Any):
        upstreams = {model["name"]: start(Upstream(model["name"])) for model in MODELS}
        channel_models = {**aliases(), **(names or {})}
        quick = {"backoffBaseMs": 5, "backoffMaxMs": 10}
        off = {"enabled": False, "moe": moe or {}, "retry": quick, **settings.pop("channel_settings", {})}
        built = stack(models=settings.pop("models", MODELS), channelModels=channel_models, channel_off=off, **settings)
        return make(built, {name: upstream.port for name, upstream in upstreams.items()}), upstreams

    return build


def _on(model: dict[str, Any], pool: str) -> dict[str, Any]:
    return {**model, "prefill": {**model["prefill"], "pool": pool}, "decode": {**model["decode"], "pool": pool}}


def asked(upstreams: dict[str, Upstream]) -> dict[str, int]:
    return {name: len(upstream.seen) for name, upstream in upstreams.items()}


def ask(gateway, model: str, times: int = 1, **more: Any) -> list[str]:
    with gateway.client() as client:
        answers = [client.post(CHAT, json={**ASK, "model": model, **more}) for _ in range(times)]
    return [
        answer.headers["x-moonstack-served-by"] if answer.is_success else str(answer.status_code) for answer in answers
    ]


def test_an_alias_goes_to_its_own_model_by_that_models_name(four):
    gateway, upstreams = four()
    assert ask(gateway, "moe-expert-c") == ["cluster/three"]
    assert upstreams["three"].seen[0].json["model"] == "three"


def test_an_alias_falls_back_in_the_declared_order_and_tries_no_target_twice(four):
    gateway, upstreams = four()
    for name in ("one", "two", "three"):
        upstreams[name].fault = 503
    assert ask(gateway, "moe-expert-a") == ["cluster/four"]
    assert asked(upstreams) == {"one": 1, "three": 1, "two": 1, "four": 1}
    upstreams["four"].fault = 503
    assert ask(gateway, "moe-expert-b") == ["503"]


def test_no_more_experts_are_tried_than_max_experts_per_request(four):
    gateway, upstreams = four(moe={"maxExpertsPerRequest": 2})
    for upstream in upstreams.values():
        upstream.fault = 503
    ask(gateway, "moe-expert-a")
    assert asked(upstreams) == {"one": 1, "three": 1, "two": 0, "four": 0}


def test_without_fallback_an_alias_is_its_own_model_alone(four):
    gateway, upstreams = four(names={**aliases(), "fallback": {"enabled": False}})
    upstreams["one"].fault = 503
    assert ask(gateway, "moe-expert-a") == ["503"]
    assert asked(upstreams) == {"one": 1, "two": 0, "three": 0, "four": 0}


def test_aliases_outside_the_declared_order_follow_by_chip_preference(four):
    names = aliases(b={"chipAffinity": ["nvidia", "ascend"]}, d={"chipAffinity": ["xuantie", "ascend"]})
    preference = {"channel_settings": {"chip": {"preference": ["xuantie", "nvidia", "ascend"]}}}
    gateway, upstreams = four(names={**names, "fallback": {"order": []}}, moe={"maxExpertsPerRequest": 2}, **preference)
    upstreams["one"].fault = 503
    assert ask(gateway, "moe-expert-a") == ["cluster/four"]


def test_an_aliass_defaults_fill_what_a_chat_body_lacks_and_no_more(four):
    gateway, upstreams = four()
    ask(gateway, "moe-expert-a")
    ask(gateway, "moe-expert-a", max_tokens=5, temperature=0)
    ask(gateway, "moe-expert-a", max_completion_tokens=6)
    ask(gateway, "one")
    with gateway.client() as client:
        client.post("/v1/embeddings", json={"model": "moe-expert-a", "input": "x"})
    asked = [[seen.json.get(name) for name in ("max_tokens", "temperature")] for seen in upstreams["one"].seen]
    assert asked == [[64, 0.5], [5, 0], [None, 0.5], [None, None], [None, None]]
    assert upstreams["one"].seen[-1].json == {"model": "one", "input": "x"}


def test_cost_optimized_starts_at_the_cheapest_chip_in_proportion_to_weights(four):
    pools = [{**POOL, "name": "ascend", "costPerChipHour": 5}, {**POOL, "name": "dear", "costPerChipHour": 9}]
    placed = tuple(_on(model, "dear") if model["name"] in ("two", "four") else model for model in MODELS)
    names = aliases(a={"weight": 0.5}, b={"weight": 0.1})
    gateway, _ = four(names=names, models=placed, nodePools=pools)
    served = Counter(ask(gateway, "moe", 300))
    assert set(served) == {"cluster/one", "cluster/three"}
    assert 1.65 < served["cluster/one"] / served["cluster/three"] < 3.9


def test_among_equal_prices_the_preferred_chip_is_started_at(four):
    names = aliases(b={"chipAffinity": ["nvidia", "ascend"]})
    gateway, _ = four(names=names, channel_settings={"chip": {"preference": ["nvidia", "ascend", "xuantie"]}})
    assert set(ask(gateway, "moe", 20)) == {"cluster/two"}


def test_load_balanced_leaves_a_busy_target_alone(four):
    gateway, upstreams = four(moe={"routingStrategy": "load_balanced"})
    upstreams["one"].delay = upstreams["two"].delay = 3.0
    with ThreadPoolExecutor(8) as pool:
        served = Counter(name for names in pool.map(lambda _: ask(gateway, "moe", 8), range(8)) for name in names)
    assert served["cluster/three"] + served["cluster/four"] > 2 * (served["cluster/one"] + served["cluster/two"])


def test_load_balanced_tries_another_target_after_a_failure(four):
    gateway, upstreams = four(moe={"routingStrategy": "load_balanced"})
    for name in ("one", "two", "three"):
        upstreams[name].fault = 503
    assert set(ask(gateway, "moe", 10)) == {"cluster/four"}


def test_latency_optimized_prefers_the_target_that_begins_soonest(four):
    gateway, upstreams = four(moe={"routingStrategy": "latency_optimized"})
    for name, delay in (("one", 0.3), ("two", 0.2), ("four", 0.3)):
        upstreams[name].delay = delay
    served = ask(gateway, "moe", 30, stream=True)
    assert served.count("cluster/three") >= 26
    upstreams["three"].delay, upstreams["two"].delay = 0.5, 0.0
    assert ask(gateway, "moe", 20, stream=True).count("cluster/two") >= 14


def test_a_target_above_its_load_threshold_gets_no_new_first_attempts(world):
    names = aliases(a={"inCluster": None}, b={"inCluster": "chat"})
    names["models"] = [{**entry, "weight": 0.5} for entry in names["models"][:2]]
    this: World = world(
        channel={"maxConcurrent": 10, "moe": {"expertLoadThreshold": 0.5}},
        channelModels={**names, "fallback": {"order": ["moe-expert-a", "moe-expert-b"]}},
    )
    this.channel.delay = 2
    served: list[str] = []
    threads = [threading.Thread(target=lambda: served.extend(ask(this.gateway, "moe-expert-a"))) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(served) == {"channel/Outside-one": 5, "cluster/chat": 4}


@pytest.mark.parametrize("strategy", ["cost_optimized", "load_balanced"])
def test_when_every_target_is_above_its_threshold_requests_are_still_served(world, strategy: str):
    one = {**aliases(a={"inCluster": None, "weight": 1.0})["models"][0]}
    two = [{**one, "weight": 0.5}, {**one, "alias": "moe-expert-b", "modelName": "Outside-two", "weight": 0.5}]
    this: World = world(
        channel={"maxConcurrent": 20, "moe": {"expertLoadThreshold": 0.1, "routingStrategy": strategy}},
        channelModels={"models": two, "fallback": {"order": ["moe-expert-a", "moe-expert-b"]}},
    )
    this.channel.delay = 1
    with ThreadPoolExecutor(8) as pool:
        served = [name for names in pool.map(lambda _: ask(this.gateway, "moe"), range(8)) for name in names]
    assert all(name.startswith("channel/") for name in served), served
