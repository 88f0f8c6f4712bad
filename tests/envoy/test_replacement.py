"""Routers come and go behind the gateway, as a rollout replaces them and as engines die, and no request is lost."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.simulated.gateway import Gateway
from bench.simulated.sockets import free_port
from tests.envoy.load import Load
from tests.envoy.name_server import NameServer
from tests.envoy.stacks import ASK, CHAT, stack
from tests.envoy.upstream import Upstream
from tests.envoy.waiting import wait_for as wait_until

wait_for = partial(wait_until, seconds=20)
"""Busy cores make a name's round of a quarter of a second a long one."""


@dataclass
class Routers:
    """Routers on one port and addresses of their own, a name that leads to some of them, and a gateway that follows it."""

    gateway: Gateway
    names: NameServer
    start: Callable[..., Any]
    port: int

    def router(self, number: int) -> Upstream:
        return self.start(Upstream(f"router-{number}", port=self.port, host=address(number)))

    def ask(self, client: httpx.Client) -> str | None:
        answer = client.post(CHAT, json={**ASK, "stream": True})
        return None if "[DONE]" in answer.text else f"{answer.status_code} {answer.text[:100]}"


def address(number: int) -> str:
    return f"127.0.0.{10 + number}"


@pytest.fixture
def routers(start: Callable[..., Any], tmp_path: Path) -> tuple[Routers, list[Upstream]]:
    """The first two routers of `chat`, and what more of them need."""
    port = free_port()
    first = [start(Upstream(f"router-{number}", port=port, host=address(number))) for number in (1, 2)]
    names = start(NameServer([address(1), address(2)]))
    gateway = start(Gateway(stack(), tmp_path / "gateway", {"chat": port}, dns=names.port))
    return Routers(gateway, names, start, port), first


def test_a_router_whose_name_is_gone_gets_no_new_request_though_it_still_answers(routers):
    this, (leaving, staying) = routers
    this.names.addresses = [address(2)]
    with this.gateway.client() as client:

        def left() -> bool:
            leaving.seen.clear()
            return [this.ask(client) for _ in range(6)] == [None] * 6 and not leaving.seen

        wait_for(left)
    assert leaving.ready and staying.seen


def test_routers_are_replaced_one_by_one_and_no_request_is_lost(routers):
    this, old = routers
    with Load(this.ask, this.gateway.client) as load:
        for number, leaving in enumerate(old, start=3):
            coming = this.router(number)
            this.names.addresses = [address(number - 1), address(number)]
            wait_for(lambda coming=coming: bool(coming.seen))
            wait_for(lambda leaving=leaving: _idle(leaving))
            leaving.stop()
        before = load.done
        wait_for(lambda: load.done > before + 20)
    assert not load.failures


def test_when_all_names_change_at_once_no_request_is_lost(routers):
    this, old = routers
    new = [this.router(number) for number in (3, 4)]
    with Load(this.ask, this.gateway.client) as load:
        wait_for(lambda: load.done > 10)
        this.names.addresses = [address(3), address(4)]
        wait_for(lambda: all(router.seen for router in new))
        wait_for(lambda: all(_idle(router) for router in old))
    assert not load.failures


def test_a_name_server_that_fails_takes_no_router_away(routers):
    this, _ = routers
    with Load(this.ask, this.gateway.client) as load:
        this.names.failing = True
        wait_for(lambda: this.names.failures > 3)
        before = load.done
        wait_for(lambda: load.done > before + 20)
    assert not load.failures


def test_where_there_is_no_other_place_routers_that_seem_unwell_are_tried_all_the_same(routers):
    this, _ = routers
    new = [this.router(number) for number in (3, 4)]
    for router in new:
        router.ready = False
    with Load(this.ask, this.gateway.client) as load:
        this.names.addresses = [address(3), address(4)]
        wait_for(lambda: all(len(router.seen) > 5 for router in new))
    assert not load.failures


def test_an_attempt_does_not_go_to_the_router_that_failed_the_one_before(routers):
    this, (failing, well) = routers
    failing.fault = 429
    with this.gateway.client() as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post(CHAT, json=ASK).status_code, range(24)))
    assert answers == [200] * 24
    assert len(failing.seen) <= 24 and len(well.seen) == 24


def test_where_there_is_no_other_place_an_attempt_waits_until_the_dead_part_can_have_been_taken_out(routers):
    this, both = routers
    for router in both:
        router.fault = 500
    with this.gateway.client() as client:
        began = time.monotonic()
        answer = client.post(CHAT, json=ASK)
    assert answer.status_code == 500 and sum(len(router.seen) for router in both) == 3
    assert time.monotonic() - began >= 2
    assert not {name for name in answer.headers if "pause" in name}


def _idle(router: Upstream) -> bool:
    """Whether nothing came for half a second."""
    router.seen.clear()
    time.sleep(0.5)
    return not router.seen and not router.active
