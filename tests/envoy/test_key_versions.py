"""Versions of one key: the gateway counts each by itself, and everything else knows the client by its id."""

import json

from bench.simulated.gateway import fake_key
from capacity.keys.last_use import version_counts
from rules.envoy_keys import ClientKey, version_name
from tests.envoy.stacks import CLIENTS
from tests.envoy.test_purposes import ask
from tests.envoy.waiting import wait_for


def test_requests_are_counted_by_version_and_limited_by_id(world):
    this = world(keys=({**CLIENTS[0], "qps": 1}, CLIENTS[1]), gateway={"cacheIsolation": "perKey"})
    old, new = fake_key(), fake_key()
    this.gateway.write_keys([ClientKey("client", old), ClientKey("client", new)])
    wait_for(lambda: ask(this, new).status_code == 200)
    statuses = [ask(this, value).status_code for value in (old, old, new) * 3]
    assert 429 in statuses, "both versions draw on the limit of one key"
    assert {seen.json["cache_salt"] for seen in this.router.seen} == {"client:"}
    assert not any("@" in value for seen in this.router.seen for value in seen.headers.values())

    def counted() -> tuple[float, bool]:
        counts = version_counts(this.gateway.metrics())
        return counts.get(version_name("client", old), 0), counts.get(version_name("client", new), 0) >= 3

    wait_for(lambda: counted() == (6, True))
    wait_for(lambda: this.gateway.access_log().count('"key_version"') > 9)
    lines = [json.loads(line) for line in this.gateway.access_log().splitlines() if line.startswith("{")]
    versions = {(line["client"], line["key_version"]) for line in lines if line["status"] != 401}
    assert {f"{client}@{version}" for client, version in versions} == {
        version_name("client", old),
        version_name("client", new),
    }


def test_used_up_tokens_are_answered_whatever_the_version(world):
    this = world(keys=CLIENTS)
    value = fake_key()
    this.gateway.write_keys([ClientKey("client", value, exhausted=True)])
    wait_for(lambda: ask(this, value).status_code == 429)
    assert ask(this, value).json()["error"]["code"] == "insufficient_quota"
    with this.gateway.client(value) as client:
        assert client.get("/v1/models").status_code == 429
