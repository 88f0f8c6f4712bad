"""The doctor on faults of the real gateway and behind it, told by the gateway's own counters and by how it answers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import yaml

from bench.simulated.gateway import Gateway, fake_key
from bench.simulated.sockets import free_port
from capacity.keys.agent import render
from capacity.keys.config import AgentConfig
from rules.envoy_keys import FILE
from settings.settings import Settings
from smoke.client import GatewayClient
from smoke.doctor.diagnosis import findings
from smoke.doctor.facts import Door, Facts
from smoke.doctor.gateway import CATALOGUE, total
from smoke.doctor.gather import knock
from smoke.errors import SmokeError
from smoke.exposition import samples
from tests.envoy.stacks import ASK, CHAT, CLIENTS, MODEL, stack, stack_values
from tests.envoy.upstream import Upstream
from tests.envoy.waiting import wait_for
from tests.envoy.world import TWIN, World

OFTEN = {"models": [TWIN], "fallback": {"order": ["moe-expert-a"]}, "observability": {"exportIntervalSeconds": 1}}
"""Envoy adds up its histograms once an interval."""


def counted(gateway: Gateway, settings: Settings) -> Facts:
    """What the gateway counts."""
    return Facts(settings=settings, now=datetime.now(UTC), gateway=tuple(samples(gateway.metrics())))


def named(this: World) -> set[str]:
    """What the doctor says of this gateway."""
    facts = counted(this.gateway, stack(channel={"baseUrl": this.edge.base_url}))
    return {one.id for one in findings(CATALOGUE, facts)}


def at_the_door(gateway: Gateway, settings: Settings, key: str | None = None) -> set[str]:
    """What the doctor says once it has knocked at this gateway."""

    async def look() -> Door:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=30) as http:
            try:
                return await knock(GatewayClient(http, key or gateway.key), settings)
            except SmokeError as error:
                return Door(error=error)

    facts = Facts(settings=settings, now=datetime.now(UTC), door=asyncio.run(look()))
    return {one.id for one in findings(CATALOGUE, facts)}


def test_a_gateway_whose_channel_answers_well_has_no_finding_but_that_it_is_used(world):
    this = world()
    this.router.fault = 503
    assert this.ask().status_code == 200
    assert named(this) <= {"channel-slow"}


@pytest.mark.parametrize(
    ("status", "finding"),
    [
        (401, "channel-key-refused"),
        (403, "channel-key-refused"),
        (404, "channel-model-unknown"),
        (429, "channel-exhausted"),
    ],
)
def test_what_the_channel_answers_is_named(world, status: int, finding: str):
    this = world()
    this.router.fault, this.channel.fault = 503, status
    assert this.ask().status_code != 200
    assert finding in named(this)


def test_a_channel_that_refuses_connections_is_named(world):
    this = world()
    this.router.fault = 503
    this.edge.stop()
    assert this.ask().status_code != 200
    assert "channel-unreachable" in named(this)


def test_a_channel_whose_name_does_not_resolve_is_named(world):
    this = world(channel={"baseUrl": f"https://no-such-host.invalid:{free_port()}/api"})
    this.router.fault = 503
    assert this.ask().status_code != 200
    wait_for(lambda: "channel-unreachable" in named(this))


def test_a_configuration_that_the_gateway_refuses_is_named(world):
    this = world()
    files = {path.name: path.read_text() for path in this.gateway.config.path.iterdir() if path.suffix == ".yaml"}
    files["clusters.yaml"] = files["clusters.yaml"].replace("connect_timeout", "connect_timeouts")
    this.gateway.config.write(files)
    wait_for(lambda: "gateway-config-rejected" in named(this))


def test_a_channel_that_takes_most_of_the_time_is_named_and_one_that_is_only_there_is_not(world):
    this = world(channelModels=OFTEN)
    this.router.delay = this.channel.delay = 0.5
    assert this.ask().status_code == 200
    settings = stack(channel={"baseUrl": this.edge.base_url})
    spent = {"envoy_http_conn_manager_prefix": "gateway"}
    wait_for(lambda: total(counted(this.gateway, settings), "envoy_http_downstream_rq_time_sum", **spent) > 0, 10)
    assert "channel-slow" not in named(this)
    this.router.fault = 503
    assert this.ask().status_code == 200
    wait_for(lambda: "channel-slow" in named(this), 10)


def test_routers_without_an_engine_are_named_and_sound_ones_are_not(make, start):
    routers = start(Upstream("router"))
    gateway = make(stack(), {"chat": routers.port})
    assert at_the_door(gateway, gateway.settings) == set()
    routers.fault = 503
    assert at_the_door(gateway, gateway.settings) == {"model-unavailable"}


def test_a_key_that_the_gateway_does_not_know_is_named(gateway: Gateway):
    assert at_the_door(gateway, gateway.settings) == set()
    assert at_the_door(gateway, gateway.settings, fake_key()) == {"key-refused"}


def test_a_gateway_that_is_gone_is_named(make, router: Upstream):
    gateway = make(stack(), {"chat": router.port})
    assert at_the_door(gateway, gateway.settings) == set()
    gateway.stop()
    assert at_the_door(gateway, gateway.settings) == {"gateway-unreachable"}


def test_an_answer_that_is_none_is_named(make, start):
    """What stands where the routers should be answers 200 with a page of its own."""
    routers = start(Upstream("router"))
    gateway = make(stack(), {"chat": routers.port})
    assert at_the_door(gateway, gateway.settings) == set()
    routers.fault, routers.said = 200, "<html>Welcome</html>"
    assert at_the_door(gateway, gateway.settings) == {"answer-unparsable"}


@pytest.mark.parametrize("declared", ["Chat", "chat_v2"])
def test_a_name_that_the_gateway_does_not_list_is_named(gateway: Gateway, declared: str):
    assert at_the_door(gateway, stack()) == set()
    assert "model-names-differ" in at_the_door(gateway, stack(models=({**MODEL, "name": declared},)))


@pytest.mark.parametrize(
    ("days", "status", "finding"), [(30, 200, None), (3, 200, "key-expires-soon"), (-1, 401, "key-expired")]
)
def test_a_key_is_named_before_its_end_and_after_it_when_the_gateway_refuses_it(
    fresh: Gateway, tmp_path: Path, days: int, status: int, finding: str | None
):
    """The stack's file says when the key ends, and the key agent's list in the gateway follows."""
    ending = {**CLIENTS[0], "expires": (datetime.now(UTC) + timedelta(days=days)).isoformat()}
    groups = stack_values(keys=(ending, CLIENTS[1]))
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(yaml.safe_dump({"config": {f"moonstack:{name}": group for name, group in groups.items()}}))
    settings = Settings.from_stack_file(file, as_deployed=True)
    value, kept = fake_key(), fake_key()
    config = AgentConfig.of("test", settings.keys.keys, [("client", "first"), ("other", "second")])
    fresh.keys.write({FILE: render(config, {"first": value, "second": kept}, {}, datetime.now(UTC))})
    with fresh.client(kept) as client:
        wait_for(lambda: client.get("/v1/models").status_code == 200)
    with fresh.client(value) as client:
        assert client.get("/v1/models").status_code == status
    assert at_the_door(fresh, settings, kept) == ({finding} if finding else set())


@pytest.mark.parametrize("budget", ["declared", "Envoy's own of three"])
def test_retries_that_a_budget_cuts_off_are_named(make, start, budget: str):
    routers = start(Upstream("router"))
    gateway = make(stack(), {"chat": routers.port})
    if budget != "declared":
        files = {path.name: path.read_text() for path in gateway.config.path.iterdir() if path.suffix == ".yaml"}
        files["clusters.yaml"] = files["clusters.yaml"].replace("max_retries: 100000", "max_retries: 3")
        updated = "envoy_cluster_manager_cluster_modified"
        before = total(counted(gateway, stack()), updated)
        gateway.config.write(files)
        wait_for(lambda: total(counted(gateway, stack()), updated) > before)
    routers.fault = 503

    def ask(_: int) -> int:
        with gateway.client() as client:
            return client.post(CHAT, json=ASK).status_code

    with ThreadPoolExecutor(10) as pool:
        assert set(pool.map(ask, range(10))) == {503}
    found = {one.id for one in findings(CATALOGUE, counted(gateway, stack()))}
    assert ("gateway-retries-overflow" in found) == (budget != "declared")
