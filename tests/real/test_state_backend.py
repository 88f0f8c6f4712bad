"""State in S3 under a KMS key, as pre and prod keep it: from login to a restore, against a server that speaks AWS's API."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from local import tools
from policies.audit import state
from policies.audit.run import audit
from policies.audit.search import Canaries

BUCKET, ALIAS, STACK = "states", "alias/moonstack-pre", "pre"
PROGRAM = """
import os, time
import pulumi

config = pulumi.Config()
kept = pulumi.Stash("kept", input=config.require_secret("key"))
time.sleep(float(os.environ.get("DAWDLE", "0")))
pulumi.Stash("more", input=os.environ.get("MORE", "1"))
"""


class Aws:
    """A moto server and, in front of it, a line that can be cut."""

    def __init__(self) -> None:
        self.server_port, self.port = _free_port(), _free_port()
        command = [str(Path(sys.prefix, "bin", "moto_server")), "-H", "127.0.0.1", "-p", str(self.server_port)]
        self._server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for(self.server_port)
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self.connect()

    def connect(self) -> None:
        """Put the line up."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Cut the line: open connections end, new ones are refused."""
        assert self._listener
        self._listener.shutdown(socket.SHUT_RDWR)
        for one in (self._listener, *self._open):
            one.close()
        self._open.clear()

    def end(self) -> None:
        self._server.terminate()
        self._server.wait()

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{self.server_port}",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

    def objects(self, part: str = "") -> dict[str, bytes]:
        s3 = self.client("s3")
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []) if part in one["Key"]]
        return {key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                incoming, _ = listener.accept()
            except OSError:
                return
            outgoing = socket.create_connection(("127.0.0.1", self.server_port))
            self._open += [incoming, outgoing]
            for source, target in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for one in (source, target):
            one.close()


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("moto did not start within 60 s")


class Project:
    """A project whose state is in that S3."""

    def __init__(self, folder: Path, aws: Aws) -> None:
        self.folder, self.aws = folder, aws
        endpoint = f"http://127.0.0.1:{aws.port}"
        self.backend = f"s3://{BUCKET}?region=us-east-1&endpoint={endpoint}&s3ForcePathStyle=true"
        self.environment = {
            **os.environ,
            "PATH": tools.search_path(),
            "PULUMI_BACKEND_URL": self.backend,
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_MAX_ATTEMPTS": "2",
        }
        project = {"name": "moonstack", "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}}}
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        (folder / "__main__.py").write_text(PROGRAM)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        command = [str(tools.path("pulumi")), *arguments, "--non-interactive"]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment | environment, start_new_session=True, **pipes
        )

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        said, _ = process.communicate(stdin, timeout=300)
        return process.returncode, said

    def up(self, **environment: str) -> tuple[int, str]:
        return self.run("up", "--yes", "--skip-preview", "--stack", STACK, **environment)


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    tools.ensure()
    made = Aws()
    made.client("s3").create_bucket(Bucket=BUCKET)
    kms = made.client("kms")
    kms.create_alias(AliasName=ALIAS, TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    yield made
    made.end()


@pytest.fixture(scope="module")
def key() -> str:
    return "sk-" + secrets.token_hex(24)


@pytest.fixture(scope="module")
def project(aws, key, tmp_path_factory) -> Project:
    made = Project(tmp_path_factory.mktemp("project"), aws)
    provider = f"awskms://{ALIAS}?region=us-east-1"
    for arguments, stdin in (
        (("stack", "init", STACK, "--secrets-provider", provider), ""),
        (("config", "set", "--secret", "key", "--stack", STACK), key),
        (("up", "--yes", "--skip-preview", "--stack", STACK), ""),
    ):
        code, said = made.run(*arguments, stdin=stdin)
        assert code == 0, said
    return made


def test_no_object_of_the_bucket_holds_a_clear_text_key(project, aws, key, monkeypatch):
    assert aws.objects(".pulumi/stacks/")
    assert all(key.encode() not in data for data in aws.objects().values())
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    result = audit(state.places(project.backend, STACK), Canaries((key,)))
    assert result.exit_code == 0, result.document()
    assert all(one.items for one in result.looked)


def test_a_lock_left_by_a_killed_run_is_named_and_cleared_on_purpose_only(project, aws):
    process = project.start("up", "--yes", "--skip-preview", "--stack", STACK, DAWDLE="60")
    deadline = time.monotonic() + 60
    while not aws.objects(".pulumi/locks/"):
        assert time.monotonic() < deadline, "the run took no lock"
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    code, said = project.up()
    assert code != 0
    assert "lock" in said
    assert project.run("cancel", "--yes", "--stack", STACK)[0] == 0
    code, said = project.up()
    assert code == 0, said


def test_a_network_lost_in_the_middle_is_survived_or_said_and_the_next_run_converges(project, aws):
    """Lost for good, a run ends with an error after three minutes of retries; here the line comes back after 15 seconds."""
    process = project.start("up", "--yes", "--skip-preview", "--stack", STACK, DAWDLE="6", MORE="2")
    time.sleep(4)
    aws.cut()
    time.sleep(15)
    aws.connect()
    said, _ = process.communicate(timeout=300)
    if process.returncode:
        assert "error" in said
        project.run("cancel", "--yes", "--stack", STACK)
    code, said = project.up(MORE="2")
    assert code == 0, said
    code, said = project.run("preview", "--expect-no-changes", "--stack", STACK, MORE="2")
    assert code == 0, said


def test_a_lost_state_is_restored_from_its_backup(project, aws, key):
    code, before = project.run("stack", "export", "--stack", STACK)
    assert code == 0
    assert key not in before
    (name, _), *_ = aws.objects(".pulumi/stacks/moonstack/pre.json").items()
    backups = aws.objects(".pulumi/backups/")
    assert backups
    _, newest = max(backups.items())
    aws.client("s3").delete_object(Bucket=BUCKET, Key=name)
    assert project.run("stack", "export", "--stack", STACK)[0] != 0
    aws.client("s3").put_object(Bucket=BUCKET, Key=name, Body=newest)
    code, after = project.run("stack", "export", "--stack", STACK)
    assert code == 0, after
    urns = [resource["urn"] for resource in json.loads(after[after.index("{") :])["deployment"]["resources"]]
    assert any(urn.endswith("::kept") for urn in urns)
    code, said = project.up(MORE="2")
    assert code == 0, said
