"""The audit finds a canary in each place where it claims to look, and says where it could not look."""

import base64
import gzip
import json
import secrets
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from policies.__main__ import app
from policies.audit import cluster, engine, state
from policies.audit.run import Place, Unreadable, audit
from policies.audit.search import Canaries, search

PLAIN = Canaries()


@pytest.fixture
def canary() -> str:
    """A value that looks like nothing, as a generated password might."""
    return "".join(secrets.choice("abcdefghijklmnop") for _ in range(40))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "wrap",
    [
        str,
        b64,
        lambda v: b64("x" + v),
        lambda v: b64("xy" + v + "zz"),
        lambda v: v.encode().hex(),
        lambda v: json.dumps({"a": v}),
    ],
)
def test_a_known_value_is_found_in_every_form(canary, wrap):
    content = {"log": f"some {wrap(canary)} text"}
    assert next(kind for _, kind in search(content, Canaries((canary,)))) == "a known key"
    assert not list(search({"log": "some text"}, Canaries((canary,))))


def checkpoint(data: Any, **more: Any) -> dict[str, Any]:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}
    resource = {"urn": "urn:pulumi:dev::m::kubernetes:core/v1:Secret::s", "type": "kubernetes:core/v1:Secret"}
    latest = {
        "resources": [{**resource, "inputs": secret, "outputs": {}}],
        "secrets_providers": {"state": {"salt": "v1:abc"}},
    }
    return {"version": 3, "checkpoint": {"stack": "dev", "latest": latest}, **more}


ENCRYPTED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc:def"}
FILES = {
    "Pulumi state": ".pulumi/stacks/moonstack/dev.json",
    "Pulumi backups": ".pulumi/backups/moonstack/dev/dev.1764530000.json",
    "Pulumi history": ".pulumi/history/moonstack/dev/dev-1764530000.history.json",
}


def backend(folder, documents: dict[str, bytes]) -> str:
    for name, data in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return f"file://{folder}"


def clean() -> dict[str, bytes]:
    return {name: json.dumps(checkpoint(ENCRYPTED)).encode() for name in FILES.values()}


def places_with_findings(places: list[Place], canaries: Canaries = PLAIN) -> list[str]:
    return sorted({found.place for found in audit(places, canaries).sightings})


@pytest.mark.parametrize("place", FILES)
def test_a_canary_in_the_backend_is_found_in_that_place_alone(tmp_path, canary, place):
    documents = clean()
    documents[FILES[place]] = json.dumps(checkpoint(ENCRYPTED, message=f"x {canary}")).encode()
    where = backend(tmp_path, documents)
    assert places_with_findings(state.places(where, "dev"), Canaries((canary,))) == [place]


@pytest.mark.parametrize("place", FILES)
def test_a_secret_that_is_not_encrypted_is_found_whatever_it_looks_like(tmp_path, canary, place):
    documents = clean()
    name = FILES[place]
    documents[f"{name}.gz"] = gzip.compress(json.dumps(checkpoint({"password": b64(canary)})).encode())
    del documents[name]
    result = audit(state.places(backend(tmp_path, documents), "dev"), PLAIN)
    assert {found.place for found in result.sightings} == {place}
    assert any(found.kind == "a Secret's data in clear text" for found in result.sightings)
    assert canary not in json.dumps(result.document())


def test_another_stacks_files_are_left_alone_and_a_missing_state_is_said(tmp_path, canary):
    documents = {".pulumi/stacks/moonstack/prod.json": json.dumps(checkpoint({"k": b64(canary)})).encode()}
    result = audit(state.places(backend(tmp_path, documents), "dev"), Canaries((canary,)))
    assert result.sightings == ()
    assert result.exit_code == 2
    assert "no state of stack dev" in (result.looked[0].unread or "")


def test_an_encrypted_backend_is_clean(tmp_path):
    assert audit(state.places(backend(tmp_path, clean()), "dev"), PLAIN).exit_code == 0


@pytest.mark.parametrize("place", FILES)
def test_a_bucket_is_searched_like_a_folder(canary, place, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="states")
        for name, data in (clean() | {FILES[place]: json.dumps(checkpoint({"k": b64(canary)})).encode()}).items():
            client.put_object(Bucket="states", Key=f"team/{name}", Body=data)
        assert places_with_findings(state.places("s3://states/team?region=us-east-1", "dev")) == [place]


def test_an_unreachable_bucket_is_said(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    result = audit(state.places("s3://states?region=us-east-1&endpoint=http://127.0.0.1:9", "dev"), PLAIN)
    assert result.exit_code == 2
    assert all("could not be read" in (one.unread or "") for one in result.looked)


def test_previews_are_searched_on_both_streams_also_when_they_fail(tmp_path, canary):
    script = tmp_path / "pulumi"
    script.write_text(f"#!/bin/sh\ncase $2 in --json) echo '{canary}';; *) echo '{canary}' >&2; exit 3;; esac\n")
    script.chmod(0o755)
    result = audit(engine.places([str(script)]), Canaries((canary,)))
    assert [found.where for found in result.sightings] == ["stdout", "stderr"]
    assert "exit 3" in (result.looked[1].unread or "")


class Pod(SimpleNamespace):
    """A pod of a fake cluster: what its log and its processes say is given."""

    def logs(self, container):
        return self.log.splitlines()

    def exec(self, command, container, check):
        dump = "config_dump" in command[-1]
        return SimpleNamespace(returncode=self.code, stdout=(self.envoy if dump else self.processes).encode())


def pod(**said: Any) -> Pod:
    raw = {"metadata": {"annotations": {"note": said.pop("annotation", "")}}}
    given = {"log": "", "processes": "", "envoy": "", "code": 0} | said
    labels = {"app.kubernetes.io/name": "gateway"}
    return Pod(
        name="gateway",
        raw=raw,
        labels=labels,
        status={"phase": "Running"},
        spec={"containers": [{"name": "envoy"}]},
        **given,
    )


class Api:
    """A fake of the four calls that the audit makes."""

    def __init__(self, the_pod: Pod, **objects: list[Any]) -> None:
        self._objects: dict[str, list[Any]] = {
            "pods": [the_pod],
            "configmaps": [],
            "secrets": [],
            "events": [],
        } | objects

    def api_resources(self):
        kinds = {"pods": "Pod", "configmaps": "ConfigMap", "secrets": "Secret", "events": "Event"}
        return [
            {"name": name, "kind": kind, "namespaced": True, "verbs": ["list"], "version": "v1"}
            for name, kind in kinds.items()
        ]

    def get(self, kind, namespace):
        return iter(self._objects[kind])


def thing(**raw: Any) -> SimpleNamespace:
    return SimpleNamespace(name="thing", raw=raw)


LIVE = {
    "cluster: objects": [
        lambda v: Api(pod(annotation=v)),
        lambda v: Api(pod(), configmaps=[thing(data={"x": v})]),
        lambda v: Api(pod(), configmaps=[thing(binaryData={"x": b64(v)})]),
        lambda v: Api(pod(), secrets=[thing(metadata={"annotations": {"last-applied": v}})]),
    ],
    "cluster: events": [lambda v: Api(pod(), events=[thing(message=v)]), lambda v: Api(pod(), events=[thing(note=v)])],
    "cluster: container logs": [lambda v: Api(pod(log=f"GET /\n{v}"))],
    "cluster: process environments and arguments": [lambda v: Api(pod(processes=f"/proc/1/environ KEY={v}"))],
    "cluster: Envoy configuration dump": [lambda v: Api(pod(envoy=json.dumps({"key": v})))],
}


@pytest.mark.parametrize(("place", "plant"), [(place, plant) for place, plants in LIVE.items() for plant in plants])
def test_a_canary_in_the_cluster_is_found_in_that_place_alone(canary, place, plant):
    assert places_with_findings(cluster.places(plant(canary), "llm"), Canaries((canary,))) == [place]


def test_a_secrets_own_data_is_no_finding(canary):
    api: Any = Api(pod(), secrets=[thing(data={"k": b64(canary)})])
    assert audit(cluster.places(api, "llm"), Canaries((canary,))).exit_code == 0


def test_a_container_that_cannot_be_looked_into_is_said():
    api: Any = Api(pod(code=127))
    result = audit(cluster.places(api, "llm"), PLAIN)
    assert result.exit_code == 2
    assert "could not look inside gateway/envoy" in (result.looked[3].unread or "")


def test_a_broken_cluster_is_said_for_every_place():
    class Broken:
        def __getattr__(self, name):
            raise ConnectionError

    api: Any = Broken()
    assert all("could not be read" in (one.unread or "") for one in audit(cluster.places(api, "llm"), PLAIN).looked)


def test_a_place_that_fails_midway_keeps_what_was_found(canary):
    def read():
        yield "first", canary
        raise Unreadable("the rest is out of reach")

    result = audit([Place("somewhere", read)], Canaries((canary,)))
    assert (result.exit_code, result.looked[0].unread) == (1, "the rest is out of reach")


def test_the_command_reports_to_people_and_machines_and_never_shows_the_value(tmp_path, canary, monkeypatch):
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend(tmp_path, clean()))
    monkeypatch.setattr(engine, "places", lambda command: [])
    (tmp_path / "canaries").write_text(canary)
    (tmp_path / "rendered").mkdir()
    (tmp_path / "rendered" / "a.yaml").write_text(f"x: {canary}")
    report = tmp_path / "audit.json"
    arguments = [
        "--canary-file",
        str(tmp_path / "canaries"),
        "--manifests",
        str(tmp_path / "rendered"),
        "--json",
        str(report),
    ]
    result = CliRunner().invoke(app, ["audit", "--stack", "prod", "--offline", *arguments])
    document = json.loads(report.read_text())
    assert result.exit_code == 1
    assert document["verdict"] == "keys found"
    assert [one["where"] for one in document["findings"]] == ["a.yaml"]
    assert [one["place"] for one in document["looked"]][:3] == list(FILES)
    assert canary not in result.output + report.read_text()
