"""A gateway in front of fake upstreams, each test with its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from settings.settings import Settings
from tests.envoy.gateway import Gateway
from tests.envoy.stacks import stack
from tests.envoy.upstream import Upstream


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts anything with `start` and `stop`, and stops it after the test."""
    running: list[Any] = []

    def begin(thing: Any) -> Any:
        running.append(thing)
        return thing.start()

    yield begin
    for thing in reversed(running):
        thing.stop()


@pytest.fixture
def router(start: Callable[..., Any]) -> Upstream:
    """Plays the routers of model `chat`."""
    return start(Upstream("router"))


@pytest.fixture
def gateway(start: Callable[..., Any], router: Upstream, tmp_path: Path) -> Gateway:
    """A gateway without TLS or channel in front of `router`."""
    return start(Gateway(stack(), tmp_path / "gateway", {"chat": router.port}))


@pytest.fixture
def make(start: Callable[..., Any], tmp_path: Path) -> Callable[..., Gateway]:
    """A gateway of given settings."""

    def build(settings: Settings, upstreams: dict[str, int], **options: Any) -> Gateway:
        return start(Gateway(settings, tmp_path / "gateway", upstreams, **options))

    return build
