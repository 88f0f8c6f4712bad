"""The channel's gate: closed for some clients while it runs, with a reason, and never for what the cluster answers."""

import time
from datetime import UTC, datetime

import pytest

from bench.simulated.gateway import fake_key
from capacity.keys.config import AgentConfig, AgentKey
from capacity.keys.quotas import closed, meters
from capacity.keys.usage import token_counts
from rules.channel_gate import Reason
from rules.channel_panels import Price
from tests.envoy.stacks import ASK, CHAT
from tests.envoy.test_purposes import KEYS, ask, everyone
from tests.envoy.waiting import wait_for
from tests.envoy.world import World


def close(this: World, clients: dict[str, str], **reasons: Reason) -> None:
    """Write the gate as the key agent does, and wait until it is taken up."""
    this.gateway.write_gate(reasons)
    (name, reason), *_ = reasons.items()
    wait_for(lambda: ask(this, clients[name]).headers.get("x-moonstack-limit") == reason)


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [
        ("tokens-of-the-day", 429, "channel_limit"),
        ("spend-of-the-day", 429, "channel_limit"),
        ("key-expired", 502, "channel_unavailable"),
    ],
)
def test_a_closed_channel_stops_the_fallback_with_a_reason_for_its_clients_alone(world, reason, status, code):
    this = world(keys=KEYS)
    clients = everyone(this)
    this.router.fault = 503
    close(this, clients, other=reason)
    before = len(this.channel.seen)
    answer = ask(this, clients["other"])
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.headers["x-moonstack-limit"] == reason
    assert "x-envoy-ratelimited" not in answer.headers
    assert len(this.channel.seen) == before
    assert ask(this, clients["client"]).headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"


def test_the_cluster_still_answers_clients_whose_channel_is_closed_and_the_gate_opens_again(world):
    this = world(keys=KEYS)
    clients = everyone(this)
    this.router.fault = 503
    close(this, clients, client="spend-of-the-day")
    this.router.fault = None
    wait_for(lambda: ask(this, clients["client"]).status_code == 200, seconds=20)
    assert ask(this, clients["client"]).headers["x-moonstack-served-by"] == "cluster/chat"
    this.router.fault = 503
    this.gateway.write_gate({})
    wait_for(lambda: ask(this, clients["client"]).status_code == 200)
    assert ask(this, clients["client"]).headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"


@pytest.mark.parametrize("left", [{}, {"out": ""}], ids=["the agent took it", "the operator emptied it"])
def test_a_key_that_ended_is_sent_by_nobody_and_its_successor_by_everybody(world, left):
    """What a pod is given, in either order of its two folders: gate shut and value gone, then the new value and gate open."""
    this = world(keys=KEYS)
    clients = everyone(this)
    this.router.fault = 503
    assert ask(this, clients["client"]).status_code == 200
    close(this, clients, client="key-expired", other="key-expired")
    this.channel.seen.clear()
    this.gateway.channel.write(left)
    for _ in range(10):
        answer = ask(this, clients["client"])
        assert (answer.status_code, answer.headers["x-moonstack-limit"]) == (502, "key-expired")
        assert "has expired" in answer.json()["error"]["message"]
        time.sleep(0.1)
    assert this.channel.seen == [], "nothing leaves"
    successor = fake_key()
    this.gateway.channel.write({"out": successor})
    this.gateway.write_gate({})
    wait_for(lambda: ask(this, clients["client"]).status_code == 200)
    wait_for(
        lambda: ask(this, clients["client"]) and this.channel.seen[-1].headers["authorization"] == f"Bearer {successor}"
    )


def test_a_pod_that_starts_after_the_key_has_ended_serves_the_cluster_and_says_why_the_channel_does_not(world):
    this = world(keys=KEYS, keyed=False)
    clients = everyone(this)
    assert ask(this, clients["client"]).headers["x-moonstack-served-by"] == "cluster/chat"
    this.router.fault = 503
    close(this, clients, client="key-expired")
    assert ask(this, clients["client"]).json()["error"]["code"] == "channel_unavailable"
    assert this.channel.seen == []


def test_a_closed_channel_is_tried_once_and_not_at_every_other_expert(world):
    this = world(keys=KEYS, channel={"retry": {"maxAttempts": 3}})
    clients = everyone(this)
    this.router.fault = 503
    close(this, clients, client="spend-of-the-day")
    this.router.seen.clear()
    assert ask(this, clients["client"]).status_code == 429
    assert len(this.router.seen) <= 2


def test_what_the_gateway_counts_is_what_the_agent_bills(world):
    this = world(keys=KEYS)
    clients = everyone(this)
    config = AgentConfig(
        namespace="llm",
        keys=(
            AgentKey(id="client", pays_with="out", tokens_per_day=1000, spend_per_day=1),
            AgentKey(id="out", outbound=True, tokens_per_day=36, spend_per_day=1),
        ),
        prices=(Price("MiniMax-M2.5", 1e4, 2e4),),
    )
    assert ask(this, clients["client"]).headers["x-moonstack-served-by"] == "cluster/chat"
    this.router.fault = 503
    for _ in range(2):
        assert ask(this, clients["client"]).headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"

    def read() -> dict[str, float]:
        return meters(config, token_counts(this.gateway.metrics()))

    wait_for(lambda: read()["client"] == 3 * 18)
    bill = 2 * (11 * 1e4 + 7 * 2e4) / 1e6
    assert read() == pytest.approx({"client": 54, "client:yuan": bill, "out": 36, "out:yuan": bill})
    assert closed(config, read(), datetime.now(UTC)) == {"client": "tokens-of-the-day"}


def test_streams_of_clients_with_a_quota_say_what_they_used_and_others_stay_as_they_are(world):
    this = world(keys=({**KEYS[0], "tokensPerDay": 10_000}, *KEYS[1:]), gateway={"cacheIsolation": "perKey"})
    clients = everyone(this)
    this.router.fault = 503
    for name in ("client", "other"):
        with this.gateway.client(clients[name]) as client:
            client.post(CHAT, json={**ASK, "stream": True})
            client.post(CHAT, json={**ASK, "stream": True, "stream_options": {"include_usage": False}})
            client.post(CHAT, json=ASK)
    asked = [seen.json.get("stream_options") for seen in this.channel.seen]
    assert asked == [{"include_usage": True}, {"include_usage": True}, None, None, {"include_usage": False}, None]
    assert all("cache_salt" not in seen.json for seen in this.channel.seen)
