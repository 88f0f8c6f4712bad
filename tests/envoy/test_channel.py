"""The external channel: what it sees, what stands in for what, and what a caller is told."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import httpx
import pytest

from tests.envoy.proxy import ConnectProxy
from tests.envoy.stacks import ASK, CHAT, MODEL
from tests.envoy.waiting import wait_for
from tests.envoy.world import TWIN


def test_a_model_of_the_channel_is_reached_with_the_channels_key_and_nothing_of_the_caller(world):
    this = world(
        models=({**MODEL, "name": "other"},),
        channelModels={"models": [{**TWIN, "inCluster": None}], "fallback": {"order": []}},
    )
    with this.gateway.client() as client:
        answer = client.post(
            CHAT, json={**ASK, "model": "MiniMax-M2.5"},
            headers={
                "x-api-key": this.gateway.key, "cookie": "a=b", "x-forwarded-for": "10.9.9.9", "openai-organization": "mine",
                "forwarded": "for=10.9.9.9", "x-real-ip": "10.9.9.9", "true-client-ip": "10.9.9.9", "via": "1.1 10.9.9.9",
                "x-goog-api-key": this.gateway.key, "proxy-authorization": f"Bearer {this.gateway.key}", "traceparent": "00-1",
                "x-forwarded-host": "inside.example", "x-anything": "else", "accept": "application/json",
            },
        )  # fmt: skip
    assert answer.status_code == 200
    assert answer.headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"
    seen = this.channel.seen[0]
    assert seen.path == "/api/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {this.key}"
    assert seen.headers["host"] == "localhost"
    assert seen.headers["x-edge-protocol"] == "HTTP/2"
    assert seen.headers["x-edge-sni"] == "localhost"
    own = {name for name in seen.headers if name.startswith(("x-moonstack", "x-forwarded-for-", "openai-"))}
    assert not own and not {"cookie", "x-api-key"} & seen.headers.keys()
    assert not {"forwarded", "x-forwarded-host", "traceparent", "x-anything", "via"} & seen.headers.keys()
    assert seen.headers["accept"] == "application/json"
    assert "10.9.9.9" not in json.dumps(seen.headers)
    assert this.gateway.key not in json.dumps(seen.headers)
    assert not this.router.seen


@pytest.mark.parametrize("fault", [429, 500, 502, 503, 504])
def test_a_failing_cluster_is_tried_twice_then_the_channel_serves_the_same_model(world, fault: int):
    this = world()
    this.router.fault = fault
    answer = this.ask()
    assert answer.status_code == 200
    assert answer.headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"
    assert len(this.router.seen) == 2 and len(this.channel.seen) == 1
    assert this.channel.seen[0].json["model"] == "MiniMax-M2.5"
    assert all("authorization" not in seen.headers for seen in this.router.seen)


def test_a_refusing_cluster_is_left_for_the_channel(world):
    this = world()
    this.router.stop()
    answer = this.ask()
    assert answer.status_code == 200 and answer.headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"


def test_a_cluster_without_workers_is_left_for_the_channel_at_once(world):
    this = world(channel={"chip": {"healthCheckIntervalSeconds": 1}})
    this.router.ready = False
    wait_for(lambda: this.ask().headers["x-moonstack-served-by"].startswith("channel/"))
    this.router.seen.clear()
    assert this.ask().status_code == 200
    assert not this.router.seen


def test_a_hanging_stream_is_given_up_before_its_first_byte(world):
    this = world(gateway={"firstByteSeconds": 1}, channel={"readTimeoutMs": 1000})
    this.router.fault = "hang"
    answer = this.ask(stream=True)
    assert "channel-3" in answer.text and "[DONE]" in answer.text
    assert answer.headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"


def test_a_stream_from_the_channel_passes_chunk_by_chunk(world):
    this = world()
    this.router.fault, this.channel.chunk_gap = 503, 0.3
    arrived = []
    with this.gateway.client() as client, client.stream("POST", CHAT, json={**ASK, "stream": True}) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                arrived.append(time.monotonic())
    assert len(arrived) == 5
    assert all(later - earlier > 0.15 for earlier, later in pairwise(arrived))


def test_a_crowd_fails_over_without_one_answer_lost(world):
    this = world(channel={"retry": {"backoffBaseMs": 5, "backoffMaxMs": 10}})
    this.router.fault = 503
    with ThreadPoolExecutor(12) as pool:
        served = Counter(answer.status_code for answer in pool.map(lambda _: this.ask(), range(120)))
    assert served == {200: 120}


def test_a_slow_answer_that_is_not_streamed_is_waited_for_and_not_paid_twice(world):
    this = world(gateway={"firstByteSeconds": 1}, channel={"readTimeoutMs": 1000})
    this.router.delay = 2.5
    answer = this.ask()
    assert answer.headers["x-moonstack-served-by"] == "cluster/chat"
    assert len(this.router.seen) == 1 and not this.channel.seen


def test_a_stream_that_breaks_after_its_first_byte_is_never_started_again(world):
    this = world()
    this.router.fault = "cut"
    with pytest.raises(httpx.RemoteProtocolError):
        this.ask(stream=True)
    assert len(this.router.seen) == 1 and not this.channel.seen


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_callers_mistake_is_returned_as_it_is(world, status: int):
    this = world()
    this.router.fault = status
    assert this.ask().status_code == status
    assert len(this.router.seen) == 1 and not this.channel.seen


@pytest.mark.parametrize("status", [401, 403])
def test_the_channels_refusal_of_our_key_is_502_for_the_caller(world, status: int):
    this = world()
    this.router.fault, this.channel.fault = 503, status
    assert this.ask().status_code == 502


def test_the_channels_429_reaches_the_caller_and_is_not_tried_again(world):
    entries = [{**TWIN, "inCluster": None, "weight": 0.5}]
    entries += [{**entries[0], "alias": "moe-expert-b", "modelName": "Kimi-K2.5"}]
    this = world(channelModels={"models": entries, "fallback": {"order": ["moe-expert-a", "moe-expert-b"]}})
    this.channel.fault = 503
    assert this.ask("moe-expert-a").status_code == 503
    assert len(this.channel.seen) == 2
    this.channel.fault = 429
    answer = this.ask("moe-expert-a")
    assert answer.status_code == 429
    assert len(this.channel.seen) == 3
    assert "x-envoy-ratelimited" not in answer.headers


def test_without_a_key_the_channel_is_502_and_nothing_leaves(world):
    this = world()
    this.router.fault = 503
    this.gateway.channel.write({"out": ""})
    wait_for(lambda: this.ask().status_code == 502)
    this.channel.seen.clear()
    answer = this.ask()
    assert answer.json()["error"]["code"] == "channel_unavailable"
    assert not this.channel.seen


def test_a_channel_key_that_comes_later_is_taken_up_and_until_then_the_channel_alone_is_502(world):
    this = world(keyed=False)
    assert this.ask().headers["x-moonstack-served-by"] == "cluster/chat"
    this.router.fault = 503
    refused = this.ask()
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "channel_unavailable")
    assert not this.channel.seen
    this.gateway.channel.write({"out": this.key})
    wait_for(lambda: this.ask().status_code == 200)
    assert this.channel.seen[-1].headers["authorization"] == f"Bearer {this.key}"


def test_a_certificate_for_another_host_is_not_accepted(world):
    this = world(host="elsewhere")
    this.router.fault = 503
    assert this.ask().status_code == 503
    assert not this.channel.seen


def test_with_fallback_switched_off_the_channel_is_not_tried(world):
    this = world(channelModels={"models": [TWIN], "fallback": {"enabled": False, "order": []}})
    this.router.fault = 503
    assert this.ask().status_code == 503
    assert len(this.router.seen) == 3 and not this.channel.seen


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_max_attempts_counts_all_attempts(world, attempts: int):
    this = world(channel={"retry": {"maxAttempts": attempts, "backoffBaseMs": 5, "backoffMaxMs": 10}})
    this.router.fault = this.channel.fault = 500
    assert this.ask().status_code == 500
    assert len(this.router.seen) + len(this.channel.seen) == attempts


def test_only_the_listed_statuses_are_tried_again(world):
    this = world(channel={"retry": {"retryOnStatus": [503]}})
    this.router.fault = 500
    assert this.ask().status_code == 500
    assert len(this.router.seen) == 1


def test_the_channels_limit_is_a_pods_own_and_its_429_says_so(world):
    this = world(
        models=({**MODEL, "name": "other"},),
        channel={"ratelimit": {"qpsPerPod": 5, "burst": 8}},
        channelModels={"models": [{**TWIN, "inCluster": None}], "fallback": {"order": []}},
    )
    answers = [this.ask("MiniMax-M2.5") for _ in range(20)]
    served = [answer for answer in answers if answer.status_code == 200]
    assert 8 <= len(served) <= 12
    assert {answer.status_code for answer in answers} == {200, 429}
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 429} == {"channel_limit"}
    assert len(this.channel.seen) == len(served)


def test_the_model_is_renamed_byte_for_byte(world):
    this = world()
    this.router.fault = 503
    body = b'{"n":9223372036854775807, "metadata":{"model":"chat"},\n"model" : "chat","f":1.0,"u":"\\u00e9"}'
    with this.gateway.client() as client:
        assert client.post(CHAT, content=body).status_code == 200
    assert this.channel.seen[0].body == body.replace(b': "chat",', b': "MiniMax-M2.5",')
    assert int(this.channel.seen[0].headers["content-length"]) == len(this.channel.seen[0].body)


def test_other_paths_than_chat_stay_inside_the_cluster(world):
    this = world()
    this.router.fault = 503
    with this.gateway.client() as client:
        assert client.post("/v1/embeddings", json=ASK).status_code == 503
    assert not this.channel.seen


def test_the_days_cap_stops_the_fallback_with_429_and_a_reason_and_the_cluster_still_answers(world):
    this = world(channel={"dailyRequests": 3})
    this.router.fault = 503
    answers = [this.ask() for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429, 429]
    assert answers[-1].json()["error"]["code"] == "channel_limit"
    assert answers[-1].headers["x-moonstack-limit"] == "daily-cap"
    this.router.fault = None
    wait_for(lambda: this.ask().status_code == 200, seconds=20)
    assert len(this.channel.seen) == 3


def test_the_channel_is_reached_through_a_proxy(world, start):
    proxy = start(ConnectProxy())
    this = world(channel={"proxy": f"127.0.0.1:{proxy.port}"})
    this.router.fault = 503
    assert this.ask().headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"
    assert this.channel.seen[0].headers["x-edge-protocol"] == "HTTP/2"
    assert proxy.asked == [f"CONNECT localhost:{this.edge.port} HTTP/1.1"]
