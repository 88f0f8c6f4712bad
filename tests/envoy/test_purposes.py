"""Purposes of keys: who pays at the channel, who may choose a target, and whose cache is whose."""

import json

import httpx

from bench.simulated.gateway import fake_key
from rules.envoy_keys import ClientKey
from tests.envoy.stacks import ASK, CHAT, CLIENTS, MODEL
from tests.envoy.waiting import wait_for
from tests.envoy.world import World

CODING = {"id": "coding", "purpose": "coding", "owner": "assistants"}
DEBUG = {"id": "debug", "purpose": "debug", "owner": "operators"}
KEYS = (
    CLIENTS[0],
    {**CLIENTS[1], "channelKey": "coding"},
    {"id": "operator", "purpose": "client", "owner": "operators", "channelKey": "debug"},
    {"id": "smoke", "purpose": "smoke", "owner": "smoke"},
    CODING,
    DEBUG,
)


def everyone(this: World) -> dict[str, str]:
    """Keys of four clients."""
    clients = {name: fake_key() for name in ("client", "other", "operator", "smoke")}
    this.gateway.write_keys([ClientKey(name, value) for name, value in clients.items()])
    with this.gateway.client(clients["smoke"]) as client:
        wait_for(lambda: client.get("/v1/models").status_code == 200)
    return clients


def ask(this: World, key: str, model: str = "chat", wish: str | None = None) -> httpx.Response:
    with this.gateway.client(key) as client:
        return client.post(CHAT, json={**ASK, "model": model}, headers={"moonstack-target": wish} if wish else {})


def outbound(this: World, name: str) -> str:
    return "Bearer " + (this.gateway.channel.path / name).read_text()


def test_each_client_pays_at_the_channel_with_its_own_purposes_key(world):
    this = world(keys=KEYS)
    clients = everyone(this)
    this.router.fault = 503
    for name, key_id in (("client", "out"), ("other", "coding"), ("operator", "debug"), ("smoke", "out")):
        assert ask(this, clients[name]).status_code == 200
        assert this.channel.seen[-1].headers["authorization"] == outbound(this, key_id)
    assert "moonstack" not in json.dumps(this.channel.seen[-1].headers)


def test_an_outbound_keys_own_quota_narrows_its_clients_alone(world):
    this = world(keys=(*KEYS[:4], {**CODING, "qps": 2}, DEBUG))
    clients = everyone(this)
    this.router.fault = 503
    answers = [ask(this, clients["other"], "chat").status_code for _ in range(10)]
    assert answers.count(429) >= 3
    assert all(ask(this, clients["client"]).status_code == 200 for _ in range(8))


def test_smoke_and_debugging_clients_choose_their_target_and_nobody_else(world):
    this = world(keys=KEYS)
    clients = everyone(this)
    for name in ("smoke", "operator"):
        assert ask(this, clients[name], wish="channel").headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"
        assert ask(this, clients[name], wish="cluster").headers["x-moonstack-served-by"] == "cluster/chat"
    before = len(this.channel.seen)
    for name in ("client", "other"):
        assert ask(this, clients[name], wish="channel").headers["x-moonstack-served-by"] == "cluster/chat"
    assert len(this.channel.seen) == before


def test_the_fallback_can_be_tried_while_the_cluster_is_well(world):
    this = world(keys=KEYS)
    clients = everyone(this)
    answer = ask(this, clients["smoke"], wish="fallback")
    assert answer.status_code == 200
    assert answer.headers["x-moonstack-served-by"] == "channel/MiniMax-M2.5"
    assert not this.router.seen


def test_a_target_of_the_cluster_never_falls_back_when_it_was_asked_for(world):
    this = world(keys=KEYS)
    clients = everyone(this)
    this.router.fault = 503
    assert ask(this, clients["smoke"], wish="cluster").status_code == 503
    assert not this.channel.seen


def test_with_isolation_each_key_salts_the_cache_by_itself(world):
    this = world(keys=KEYS, gateway={"cacheIsolation": "perKey"}, models=(MODEL,))
    clients = everyone(this)
    with this.gateway.client(clients["other"]) as client:
        client.post(CHAT, json=ASK)
        client.post(CHAT, json={**ASK, "cache_salt": "mine"})
        twice = b'{"model":"chat","cache_salt":"a","cache_salt":"client:"}'
        refused = client.post(CHAT, content=twice)
    with this.gateway.client(clients["client"]) as client:
        client.post(CHAT, json=ASK)
    assert [seen.json.get("cache_salt") for seen in this.router.seen] == ["other:", "other:mine", "client:"]
    assert [seen.json["messages"] for seen in this.router.seen] == [ASK["messages"]] * 3
    assert refused.status_code == 400


def test_the_channel_learns_nothing_of_the_isolation(world):
    this = world(keys=KEYS, gateway={"cacheIsolation": "perKey"})
    clients = everyone(this)
    this.router.fault = 503
    with this.gateway.client(clients["client"]) as client:
        client.post(CHAT, json=ASK)
        client.post(CHAT, json={**ASK, "cache_salt": "mine"})
    assert this.channel.seen[0].json == {**ASK, "model": "MiniMax-M2.5"}
    assert this.channel.seen[1].json == {**ASK, "model": "MiniMax-M2.5", "cache_salt": "mine"}


def test_without_isolation_the_cache_is_shared(world):
    this = world()
    this.ask()
    assert "cache_salt" not in this.router.seen[0].json
