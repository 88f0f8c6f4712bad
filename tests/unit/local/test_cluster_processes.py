"""The supervisor, with real processes."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.cluster.processes import Service, Supervisor
from local.errors import LocalError


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    one = Supervisor(tmp_path)
    yield one
    one.stop(*one.names(), seconds=1)


def _sleeper(configuration: str = "") -> Service:
    return Service("sleeper", ("sleep", "60"), configuration=configuration)


def test_a_second_start_leaves_the_process_alone(supervisor: Supervisor):
    assert supervisor.ensure(_sleeper())
    first = supervisor.running("sleeper")
    assert not supervisor.ensure(_sleeper())
    assert supervisor.running("sleeper") == first is not None


def test_another_configuration_restarts_the_process(supervisor: Supervisor):
    supervisor.ensure(_sleeper())
    first = supervisor.running("sleeper")
    assert supervisor.ensure(_sleeper("changed"))
    assert supervisor.running("sleeper") not in (None, first)


def test_a_dead_process_is_started_again(supervisor: Supervisor):
    supervisor.ensure(_sleeper())
    first = supervisor.running("sleeper")
    assert first is not None
    os.kill(first, 9)
    time.sleep(0.1)
    assert supervisor.running("sleeper") is None, "a zombie is dead"
    assert supervisor.ensure(_sleeper())


def test_a_process_that_got_the_number_of_a_dead_one_is_never_killed(supervisor: Supervisor, tmp_path: Path):
    with subprocess.Popen(["sleep", "60"]) as stranger:
        supervisor.ensure(_sleeper())
        record = tmp_path / "processes" / "sleeper.json"
        ours = supervisor.running("sleeper")
        record.write_text(json.dumps({**json.loads(record.read_text()), "pid": stranger.pid, "born": 1}))
        assert supervisor.running("sleeper") is None
        supervisor.stop("sleeper")
        assert stranger.poll() is None
        stranger.kill()
        assert ours is not None
        os.kill(ours, 9)


def test_a_record_of_before_the_last_boot_names_nobody(supervisor: Supervisor, tmp_path: Path):
    supervisor.ensure(_sleeper())
    ours = supervisor.running("sleeper")
    record = tmp_path / "processes" / "sleeper.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot": "another"}))
    assert supervisor.running("sleeper") is None
    assert ours is not None
    os.kill(ours, 9)


def test_a_half_written_record_is_no_record(supervisor: Supervisor, tmp_path: Path):
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes" / "sleeper.json").write_text('{"pid": 1')
    assert supervisor.running("sleeper") is None


def test_a_process_that_does_not_want_to_go_is_killed_with_its_children(supervisor: Supervisor):
    supervisor.ensure(Service("stubborn", ("sh", "-c", "trap '' TERM; sleep 61 & wait; sleep 62")))
    pid = supervisor.running("stubborn")
    time.sleep(0.3)
    supervisor.stop("stubborn", seconds=0.3)
    time.sleep(0.1)
    alive = subprocess.run(["ps", "-o", "stat=", "-g", str(pid)], capture_output=True, text=True, check=False).stdout
    assert all(state.startswith("Z") for state in alive.split())
    assert supervisor.names() == []


def test_a_service_that_died_is_named_with_its_last_words(supervisor: Supervisor):
    supervisor.ensure(Service("failing", ("sh", "-c", "echo first; echo no such flag; exit 1")))
    time.sleep(0.3)
    with pytest.raises(LocalError, match=r"failing has stopped: no such flag; see .*failing\.log"):
        supervisor.require("failing")


def test_the_log_of_the_run_before_is_kept(supervisor: Supervisor):
    for word in ("first", "second"):
        supervisor.ensure(Service("speaker", ("sh", "-c", f"echo {word}; sleep 60"), configuration=word))
        time.sleep(0.2)
    assert supervisor.log("speaker").read_text() == "second\n"
    assert supervisor.log("speaker").with_name("speaker.log.previous").read_text() == "first\n"
