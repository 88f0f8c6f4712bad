"""A real file system that runs full while weights are fetched: one clear line, nothing published, and the fetch goes on later."""

import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from capacity.weights import fetch
from capacity.weights.cache import Cache
from capacity.weights.errors import FetchError
from capacity.weights.hub import HubSource
from tests.unit.weights.hub import REPOSITORY, REVISION, Hub, serving

MEGABYTE = 2**20
WEIGHTS = random.Random(0).randbytes(6 * MEGABYTE)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)], check=True)
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def ensure(hub: Hub, folder: Path) -> Cache:
    cache = Cache(folder, None)
    fetch.ensure(lambda: HubSource(REPOSITORY, REVISION, hub.address, None), cache, "model", len(WEIGHTS), False)
    return cache


def test_a_disk_that_runs_full_is_named_and_what_came_is_kept(small_disk: Path):
    """Another writer takes the room after it was found sufficient."""
    with serving(Hub({"model.safetensors": WEIGHTS}, pause=0.02)) as hub:
        partial = small_disk / ".partial" / "model" / "model.safetensors"

        def fill() -> None:
            while not partial.exists():
                time.sleep(0.01)
            (small_disk / ".other").write_bytes(b"x" * 4 * MEGABYTE)

        threading.Thread(target=fill, daemon=True).start()
        with pytest.raises(FetchError, match="is full"):
            ensure(hub, small_disk)
        assert not (small_disk / "model").exists()
        kept = partial.stat().st_size
        assert kept > 0
        (small_disk / ".other").unlink()
        hub.pause = 0
        assert (ensure(hub, small_disk).entry("model") / "model.safetensors").read_bytes() == WEIGHTS
        assert hub.ranges[-1] == ("model.safetensors", kept)


def test_a_disk_that_is_too_small_is_refused_before_anything_is_fetched(small_disk: Path):
    with serving(Hub({"model.safetensors": WEIGHTS * 2})) as hub:
        with pytest.raises(FetchError, match="free on disk"):
            ensure(hub, small_disk)
        assert hub.ranges == []
