"""Weights from a hub: everything verified, nothing fetched twice."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from capacity.weights import fetch
from capacity.weights.cache import Cache
from capacity.weights.errors import FetchError
from capacity.weights.hub import HubSource
from tests.unit.weights.hub import REPOSITORY, REVISION, Hub, serving

ROOT = Path(__file__).parents[3]
LARGE = random.Random(0).randbytes(1_000_000)
FILES = {"config.json": b"{}", "sub/model.safetensors": LARGE}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "time", SimpleNamespace(sleep=lambda _: None))


def ensure(hub: Hub, cache: Cache, revision: str = REVISION, offline: bool = False) -> Path:
    fetch.ensure(lambda: HubSource(REPOSITORY, revision, hub.address, None), cache, "model", len(LARGE), offline)
    return cache.entry("model")


def test_a_revision_is_fetched_as_it_is_and_only_once(tmp_path: Path):
    with serving(Hub(dict(FILES))) as hub:
        entry = ensure(hub, Cache(tmp_path, None))
        assert {name: (entry / name).read_bytes() for name in FILES} == FILES
        ensure(hub, Cache(tmp_path, None))
        assert len(hub.ranges) == len(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_corrupt_file_is_never_published(tmp_path: Path, name: str):
    with serving(Hub(dict(FILES), corrupt={name})) as hub:
        with pytest.raises(FetchError, match=f"{name} is corrupt at its source"):
            ensure(hub, Cache(tmp_path, None))
        assert not Cache(tmp_path, None).entry("model").exists()
        hub.corrupt.clear()
        assert ensure(hub, Cache(tmp_path, None)).exists()


def test_a_missing_revision_is_named(tmp_path: Path):
    with serving(Hub(dict(FILES))) as hub, pytest.raises(FetchError, match="has no revision ffff"):
        ensure(hub, Cache(tmp_path, None), revision="f" * 40)


def test_a_broken_connection_goes_on_where_it_stopped(tmp_path: Path):
    with serving(Hub({"model.safetensors": LARGE}, break_after=300_000)) as hub:
        assert (ensure(hub, Cache(tmp_path, None)) / "model.safetensors").read_bytes() == LARGE
        offsets = [offset for _, offset in hub.ranges]
        assert offsets[0] == 0 and offsets[1] >= 300_000


def test_a_hub_without_ranges_is_read_past_what_is_there(tmp_path: Path):
    with serving(Hub({"model.safetensors": LARGE}, break_after=300_000, ignore_ranges=True)) as hub:
        assert (ensure(hub, Cache(tmp_path, None)) / "model.safetensors").read_bytes() == LARGE


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end, whatever it waits for."""
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_download_resumes(tmp_path: Path):
    with serving(Hub({"model.safetensors": LARGE}, pause=0.05)) as hub:
        command = [
            sys.executable, "-m", "capacity.weights", "hold", "--source", f"hub://{REPOSITORY}", "--revision", REVISION,
            "--folder", str(tmp_path), "--entry", "model", "--size", "1000000", "--endpoint", hub.address,
            "--ready-file", str(tmp_path / "ready"),
        ]  # fmt: skip
        partial = tmp_path / ".partial" / "model" / "model.safetensors"
        with running(command):
            _wait(lambda: partial.exists() and partial.stat().st_size >= 200_000)
        kept = partial.stat().st_size
        assert 0 < kept < len(LARGE)
        hub.pause = 0
        with running(command) as second:
            _wait(lambda: (tmp_path / "ready").exists())
            second.send_signal(signal.SIGTERM)
            assert second.wait(20) == 0
        assert hub.ranges[-1] == ("model.safetensors", kept)
        assert (tmp_path / "model" / "model.safetensors").read_bytes() == LARGE


def test_offline_never_asks_the_hub(tmp_path: Path):
    with serving(Hub(dict(FILES))) as hub:
        with pytest.raises(FetchError, match="offline forbids"):
            ensure(hub, Cache(tmp_path, None), offline=True)
        ensure(hub, Cache(tmp_path, None))
        asked = len(hub.ranges)
        ensure(hub, Cache(tmp_path, None), offline=True)
        assert len(hub.ranges) == asked


def test_a_file_name_that_leaves_the_folder_is_refused(tmp_path: Path):
    with serving(Hub({"../evil": b"x"})) as hub, pytest.raises(FetchError, match="leaves the model's folder"):
        ensure(hub, Cache(tmp_path, None))
    assert not (tmp_path.parent / "evil").exists()


def _wait(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
