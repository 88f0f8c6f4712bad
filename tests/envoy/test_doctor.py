"""The doctor on faults between the real gateway and its channel, told by the gateway's own counters."""

from datetime import UTC, datetime

import pytest

from bench.simulated.sockets import free_port
from smoke.doctor.diagnosis import findings
from smoke.doctor.facts import Facts
from smoke.doctor.gateway import CATALOGUE
from smoke.exposition import samples
from tests.envoy.stacks import stack
from tests.envoy.waiting import wait_for
from tests.envoy.world import World


def named(this: World) -> set[str]:
    """What the doctor says of this gateway."""
    settings = stack(channel={"baseUrl": this.edge.base_url})
    facts = Facts(settings=settings, now=datetime.now(UTC), gateway=tuple(samples(this.gateway.metrics())))
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
