"""Locks of killed local runs."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from local.locks import clear_stale
from local.progress import Progress


def lock(backend: Path, name: str = "one", **held: object) -> Path:
    path = backend / ".pulumi" / "locks" / "organization" / "moonstack" / "dev" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hostname": socket.gethostname()} | held))
    return path


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_lock_of_a_process_that_is_gone_is_removed(tmp_path: Path, gone: int):
    path = lock(tmp_path, pid=gone)
    assert clear_stale(tmp_path, Progress()) == [path]
    assert not path.exists()


def test_the_lock_of_a_process_that_reuses_the_id_but_is_no_pulumi_is_removed(tmp_path: Path):
    path = lock(tmp_path, pid=os.getpid())
    clear_stale(tmp_path, Progress())
    assert not path.exists()


def test_the_lock_of_another_machine_stays(tmp_path: Path, gone: int):
    path = lock(tmp_path, pid=gone, hostname="another")
    assert clear_stale(tmp_path, Progress()) == []
    assert path.exists()


def test_the_lock_of_a_running_pulumi_stays(tmp_path: Path):
    (tmp_path / "pulumi").symlink_to("/bin/sleep")
    with subprocess.Popen([str(tmp_path / "pulumi"), "30"]) as running:
        while not Path(f"/proc/{running.pid}/cmdline").read_bytes():  # empty for a moment while the program starts
            time.sleep(0.01)
        path = lock(tmp_path, pid=running.pid)
        assert clear_stale(tmp_path, Progress()) == []
        running.terminate()
    assert path.exists()


def test_a_lock_that_was_cut_short_is_removed(tmp_path: Path):
    path = lock(tmp_path)
    path.write_text('{"pid": 12')
    clear_stale(tmp_path, Progress())
    assert not path.exists()


def test_no_backend_yet_is_no_error(tmp_path: Path):
    assert clear_stale(tmp_path / "nowhere", Progress()) == []
