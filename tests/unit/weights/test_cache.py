"""The node's cache: a limit, eviction of what nobody uses, and room on the disk."""

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from capacity.weights.cache import COMPLETE, Cache
from capacity.weights.errors import FetchError


def fill(cache: Cache, name: str, size: int, age: int = 0) -> None:
    (cache.partial(name) / "weights").write_bytes(b"x" * size)
    cache.publish(name)
    mark = cache.entry(name) / COMPLETE
    stamp = mark.stat().st_mtime - age
    os.utime(mark, (stamp, stamp))


def test_the_least_recently_used_goes_first(tmp_path: Path):
    cache = Cache(tmp_path, 250)
    fill(cache, "old", 100, age=200)
    fill(cache, "new", 100, age=100)
    assert cache.make_room("next", 100) == ["old"]
    assert cache.is_complete("new") and not cache.entry("old").exists()


def test_what_a_pod_uses_is_never_evicted(tmp_path: Path):
    cache = Cache(tmp_path, 250)
    fill(cache, "old", 100, age=200)
    fill(cache, "new", 100, age=100)
    with Cache(tmp_path, 250).using("old"):
        assert cache.make_room("next", 100) == ["new"]
        with pytest.raises(FetchError, match=r"raise weights\.cache\.limit"):
            cache.make_room("next", 200)
    assert cache.entry("old").exists()


def test_a_disk_without_room_is_named_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = Cache(tmp_path, None)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 90, 10))
    with pytest.raises(FetchError, match="free on disk"):
        cache.make_room("next", 100)


def test_what_an_interrupted_fetch_left_counts_as_room_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = Cache(tmp_path, None)
    (cache.partial("next") / "weights").write_bytes(b"x" * 95)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 90, 10))
    assert cache.make_room("next", 100) == []


def test_abandoned_parts_of_other_models_make_room(tmp_path: Path):
    cache = Cache(tmp_path, 100)
    (cache.partial("gone") / "weights").write_bytes(b"x" * 50)
    fill(cache, "old", 80)
    cache.make_room("next", 100)
    assert not (tmp_path / ".partial" / "gone").exists()


def test_an_entry_appears_only_as_a_whole(tmp_path: Path):
    cache = Cache(tmp_path, None)
    (cache.partial("model") / "weights").write_bytes(b"x")
    assert not cache.is_complete("model") and not cache.entry("model").exists()
    cache.publish("model")
    assert cache.is_complete("model")


def test_a_folder_that_is_not_ours_says_how_to_prepare_it(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(FetchError, match="install -d -o"):
        Cache(tmp_path / "file", None)
