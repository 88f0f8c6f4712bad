"""The Python language host, spoken to as the engine does it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from local.tools import language_host, language_host_launcher


@pytest.fixture
def host() -> Iterator[tuple[subprocess.Popen[str], language_pb2_grpc.LanguageRuntimeStub]]:
    """A running host and a client of it."""
    process = subprocess.Popen(
        [sys.executable, "-u", language_host.__file__, "127.0.0.1:1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
        yield process, language_pb2_grpc.LanguageRuntimeStub(channel)
    process.kill()
    process.communicate()


def _pack(folder: Path, python: str) -> language_pb2.RunPluginRequest:
    own = folder / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text(f"#!/bin/sh\n{python}\n")
    own.chmod(0o755)
    info = language_pb2.ProgramInfo(program_directory=str(folder), entry_point=".")
    return language_pb2.RunPluginRequest(pwd=str(folder), args=["127.0.0.1:2"], env=["SECRET_FREE=yes"], info=info)


def test_it_goes_at_once_and_in_silence_when_interrupted(host):
    process, stub = host
    assert stub.About(language_pb2.AboutRequest()).executable == sys.executable
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=4)
    assert time.monotonic() - started < 2
    assert (process.returncode, out, err) == (0, "", "")


def test_a_policy_pack_runs_with_the_python_of_its_own_environment(host, tmp_path: Path):
    request = _pack(tmp_path, 'echo "$@"; echo "$SECRET_FREE" >&2; exit 3')
    answers = list(host[1].RunPlugin(request))
    said = {answer.WhichOneof("output"): getattr(answer, answer.WhichOneof("output")) for answer in answers}
    assert said["stdout"] == f"-u -m pulumi.policy 127.0.0.1:2 {tmp_path}\n".encode()
    assert said["stderr"] == b"yes\n"
    assert said["exitcode"] == 3


def test_what_a_plugin_prints_arrives_while_it_runs(host, tmp_path: Path):
    answers = host[1].RunPlugin(_pack(tmp_path, "echo 4711; sleep 60"))
    assert next(answers).stdout == b"4711\n"
    answers.cancel()


def test_a_failing_program_is_reported_once_and_without_frames_of_the_host(tmp_path: Path):
    program = tmp_path / "__main__.py"
    program.write_text("def deep():\n    raise ValueError('kaputt')\n\ndeep()\n")
    with pytest.raises(Exception, match="kaputt") as caught:
        language_host._run(program)
    text = str(caught.value)
    assert text.startswith("Program failed with an unhandled exception:")
    assert "in deep" in text
    assert "language_host.py" not in text
    assert "runpy" not in text


def test_a_program_that_exits_with_a_code_has_failed(tmp_path: Path):
    program = tmp_path / "__main__.py"
    program.write_text("raise SystemExit(3)\n")
    with pytest.raises(Exception, match="non-zero exit code: 3"):
        language_host._run(program)
    program.write_text("raise SystemExit(0)\n")
    language_host._run(program)


def test_the_launcher_takes_the_environment_of_the_project_it_is_started_in(tmp_path: Path):
    language_host_launcher.install(tmp_path, tmp_path / "links")
    project = tmp_path / "project with spaces" / "deep"
    project.mkdir(parents=True)
    python = project.parent / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "mine $@"\n')
    python.chmod(0o755)
    launcher = tmp_path / "links" / "pulumi-language-python"
    said = subprocess.run([launcher, "address"], cwd=project, capture_output=True, text=True, check=True)
    assert said.stdout == f"mine -u {tmp_path}/language_host.py address\n"


def test_a_host_on_the_users_path_counts_as_official_but_ours_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    language_host_launcher.install(tmp_path, tmp_path / "links")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert language_host_launcher.official(tmp_path / "links") is None
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "links"), str(tmp_path)]))
    assert language_host_launcher.official(tmp_path / "links") == tmp_path / "pulumi-language-python"
