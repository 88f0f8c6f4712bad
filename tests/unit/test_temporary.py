"""Temporary files of called tools go with the process that called them."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import tempfile, time, sys
from settings.temporary import environment
print(environment()["TMPDIR"], flush=True)
with tempfile.NamedTemporaryFile(delete=False) as file:
    file.write(b"a private key")
print(file.name, flush=True)
if sys.argv[1:] == ["stay"]:
    time.sleep(60)
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def written(process: subprocess.Popen[str]) -> Path:
    assert process.stdout
    folder, file = (Path(process.stdout.readline().strip()) for _ in range(2))
    assert file.parent == folder
    return file


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_temporary_files_are_the_users_alone_and_gone_when_the_process_ends(tmp_path: Path):
    process = start(tmp_path)
    file = written(process)
    assert process.wait() == 0
    assert file.is_relative_to(tmp_path) and list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_and_a_living_ones_stays(tmp_path: Path):
    killed, alive = start(tmp_path, "stay"), start(tmp_path, "stay")
    left, used = written(killed), written(alive)
    assert used.parent.stat().st_mode & 0o077 == 0
    end(killed)
    assert left.exists()
    try:
        assert start(tmp_path).wait() == 0
        assert not left.exists() and used.exists()
    finally:
        end(alive)


def test_a_link_in_the_shared_folder_is_not_followed(tmp_path: Path):
    shared, precious = tmp_path / "shared", tmp_path / "precious"
    shared.mkdir()
    precious.mkdir()
    (precious / "file").write_text("kept")
    (shared / "moonstack-own-x").symlink_to(precious)
    assert start(shared).wait() == 0
    assert (precious / "file").exists()
