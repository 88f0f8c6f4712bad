"""Gateways in front of fake upstreams: one shared by the tests that only ask, and one each for those that change something."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.simulated.gateway import Gateway
from settings.settings import Settings
from tests.envoy.stacks import stack
from tests.envoy.upstream import Upstream
from tests.envoy.world import World, build


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    """Starts anything with `start` and `stop`, and stops it after the test."""
    running: list[Any] = []

    def begin(thing: Any, **options: Any) -> Any:
        running.append(thing)
        return thing.start(**options)

    yield begin
    for thing in reversed(running):
        thing.stop()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Upstream]]:
    """A gateway without TLS or channel, and the server that plays the routers of its model `chat`."""
    upstream = Upstream("router").start()
    running = Gateway(stack(), tmp_path_factory.mktemp("shared") / "gateway", {"chat": upstream.port}).start()
    yield running, upstream
    running.stop()
    upstream.stop()


@pytest.fixture
def router(shared: tuple[Gateway, Upstream]) -> Upstream:
    """Plays the routers of model `chat`; forgets what it saw before."""
    shared[1].seen.clear()
    return shared[1]


@pytest.fixture
def gateway(shared: tuple[Gateway, Upstream], router: Upstream) -> Gateway:
    """The shared gateway: don't change its files."""
    return shared[0]


@pytest.fixture
def make(start: Callable[..., Any], tmp_path: Path) -> Callable[..., Gateway]:
    """A gateway of given settings, for this test alone."""

    def begin(settings: Settings, upstreams: dict[str, int], **options: Any) -> Gateway:
        return start(Gateway(settings, tmp_path / "gateway", upstreams, **options))

    return begin


@pytest.fixture
def fresh(make: Callable[..., Gateway], router: Upstream) -> Gateway:
    """As `gateway`, for this test alone."""
    return make(stack(), {"chat": router.port})


@pytest.fixture
def world(start: Callable[..., Any], tmp_path: Path) -> Callable[..., World]:
    """Builds a gateway between a cluster and a channel, for this test alone."""

    def begin(**settings: Any) -> World:
        return build(start, tmp_path, **settings)

    return begin
