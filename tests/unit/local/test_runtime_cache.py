"""What is built once is whole or absent."""

import os
import stat
import threading
from pathlib import Path

import pytest

from local.runtime import cache


def test_what_is_there_is_not_built_again(tmp_path: Path) -> None:
    target = tmp_path / "layer.tar"
    target.write_text("kept")
    cache.ensure(target, lambda partial: pytest.fail("built again"))
    assert target.read_text() == "kept"


def test_a_build_that_fails_leaves_nothing_under_the_name_and_is_done_again(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"

    def interrupted(partial: Path) -> None:
        partial.mkdir()
        (partial / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.ensure(target, interrupted)
    assert not target.exists()
    cache.ensure(target, lambda partial: partial.mkdir())
    assert list(target.iterdir()) == []


def test_two_at_a_time_build_once(tmp_path: Path) -> None:
    built: list[Path] = []
    inside, go_on = threading.Event(), threading.Event()

    def slow(partial: Path) -> None:
        built.append(partial)
        inside.set()
        assert go_on.wait(10)
        partial.touch()

    both = [threading.Thread(target=cache.ensure, args=(tmp_path / "one", slow)) for _ in range(2)]
    both[0].start()
    assert inside.wait(10)
    both[1].start()
    go_on.set()
    for thread in both:
        thread.join(10)
    assert len(built) == 1 and (tmp_path / "one").exists()


def test_what_is_built_can_be_read_by_the_user_of_the_pods(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        cache.ensure(tmp_path / "file", lambda partial: partial.touch())
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644


def test_a_key_tells_where_its_parts_end() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("ab", "c") == cache.key(b"ab", b"c")
    assert len(cache.key()) == 12


def test_pruning_spares_the_newest_and_other_images(tmp_path: Path) -> None:
    for name in ("image-a-1.tar", "image-a-2.tar", "image-b-1.tar"):
        (tmp_path / name).touch()
    cache.prune(tmp_path / "image-a-2.tar", "image-a-*.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image-a-2.tar", "image-b-1.tar"]
