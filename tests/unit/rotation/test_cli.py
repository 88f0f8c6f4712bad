"""`python -m rotation`: what a user's mistake is answered with, and what `lock` writes."""

import json
import secrets

import pytest
from moto import mock_aws
from typer.testing import CliRunner

from rotation.__main__ import app
from rotation.locking import lock_versions
from rotation.stores import SecretsManagerStore
from rules.fingerprint import fingerprint
from rules.key_lock import LockedKey
from settings import key_lock
from settings.errors import SettingsError
from settings.settings import Settings
from tests.unit.test_settings import dev


def fresh() -> str:
    return "sk-" + secrets.token_hex(24)


@pytest.fixture
def lock_file(tmp_path, monkeypatch):
    path = tmp_path / "keys.lock.json"
    path.write_text('{"schemaVersion": 1, "keys": []}')
    monkeypatch.setattr(key_lock.load, "__defaults__", (path,))
    monkeypatch.setattr(key_lock.store, "__defaults__", (path,))
    return path


def stack(source: str = "secretsManager") -> Settings:
    keys = [{"id": name, "purpose": "client", "owner": "shop"} for name in ("one", "two")]
    return Settings.from_mapping(dev() | {"keys": {"source": source, "region": "us-east-1", "keys": keys}})


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_an_unknown_key_or_stack_is_answered_with_the_known_ones():
    result = run("--stack", "dev", "--id", "nope")
    assert (result.exit_code, "no such key; declared: dev-client" in result.output) == (2, True)
    result = run("--stack", "nope", "--id", "dev-client")
    assert (result.exit_code, "Pulumi.dev.yaml" in result.output) == (2, True)
    assert "Traceback" not in result.output


@pytest.mark.parametrize("hours", ["-1", "nan", "inf", "1e300"])
def test_an_overlap_without_an_end_is_refused(hours):
    result = run("--stack", "dev", "--id", "dev-client", "--overlap-hours", hours)
    assert (result.exit_code, "--overlap-hours" in result.output) == (2, True)


def test_placeholders_cannot_be_rotated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {f"moonstack:{k}": v for k, v in dev().items()}
    values["moonstack:keys"] = {"source": "placeholder", "keys": [{"id": "one", "purpose": "client", "owner": "x"}]}
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps({"config": values}))
    result = run("--stack", "dev", "--id", "one")
    assert (result.exit_code, "there is nothing to rotate" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("ended", "key_id", "said"),
    [
        (
            "one",
            "one",
            "key one has expired; write its next end at expires in Pulumi.dev.yaml, then make rotate STACK=dev ID=one",
        ),
        ("out", "out", "then make rotate STACK=dev ID=out < FILE, with the channel's new key in it"),
        ("out", "one", "key out has expired; write the next version's end here"),
    ],
)
def test_an_ended_key_is_answered_with_the_way_out_before_anything_is_written(
    ended, key_id, said, tmp_path, monkeypatch
):
    def refused(*_):
        raise AssertionError("neither store nor cluster may be reached")

    monkeypatch.setattr("rotation.__main__.store_of", refused)
    monkeypatch.setattr("rotation.__main__.LiveCluster", refused)
    keys = [
        {"id": name, "purpose": purpose, "owner": "x"} | ({"expires": "2020-01-01"} if name == ended else {})
        for name, purpose in (("one", "client"), ("out", "fallback"))
    ]
    values = {f"moonstack:{k}": v for k, v in (dev() | {"keys": {"source": "local", "keys": keys}}).items()}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps({"config": values}))
    result = run("--stack", "dev", "--id", key_id)
    assert (result.exit_code, said in result.output) == (2, True), result.output
    assert len(result.output.strip().splitlines()) == (1 if ended == key_id else 2)


def test_the_lock_takes_all_versions_of_the_stack_and_keeps_the_others(lock_file):
    other = LockedKey(id="one", environment="prod", purpose="client", fingerprint=fingerprint(fresh()))
    key_lock.store([other])
    old, new = fresh(), fresh()
    assert lock_versions(stack(), {"one": {"current": old, "next": new}}) is True
    locked = {(key.environment, key.fingerprint) for key in key_lock.load()}
    assert locked == {("prod", other.fingerprint), ("dev", fingerprint(old)), ("dev", fingerprint(new))}
    assert lock_versions(stack(), {"one": {"current": old, "next": new}}) is False
    lock_versions(stack(), {"one": {"current": new}})
    assert {key.fingerprint for key in key_lock.load()} == {other.fingerprint, fingerprint(new)}
    assert old not in lock_file.read_text()


def test_a_key_of_another_environment_is_not_locked(lock_file):
    value = fresh()
    key_lock.store([LockedKey(id="one", environment="prod", purpose="client", fingerprint=fingerprint(value))])
    before = lock_file.read_text()
    with pytest.raises(SettingsError, match="of prod for client"):
        lock_versions(stack(), {"one": {"current": value}})
    assert lock_file.read_text() == before


def test_generated_keys_are_in_no_lock(lock_file):
    assert lock_versions(stack("local"), {"one": {"current": fresh()}}) is False
    assert key_lock.load() == ()


def test_the_lock_command_reads_the_source_and_writes_the_file(lock_file, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.chdir(tmp_path)
    keys = stack().keys.model_dump(mode="json", by_alias=True)
    values = {f"moonstack:{k}": v for k, v in (dev() | {"keys": keys}).items()}
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps({"config": values}))
    with mock_aws():
        store = SecretsManagerStore("dev", "moonstack/", "us-east-1")
        value = fresh()
        store.client().create_secret(Name=store.name("one"), SecretString=value)
        result = run("lock", "--stack", "dev")
    assert result.exit_code == 0, result.output
    assert [key.fingerprint for key in key_lock.load()] == [fingerprint(value)]
    assert "commit it" in result.output
