"""The same key in two environments or for two purposes is refused, without any stack knowing another's key."""

import json
import secrets
from pathlib import Path

import pulumi
import pytest
import yaml

from components.key_source import key_versions
from rules.fingerprint import fingerprint
from rules.key_lock import LockedKey
from settings import key_lock
from settings.errors import SettingsError
from settings.key_values.local import LocalKeys
from settings.settings import Settings
from tests.unit.pulumi_engine import deploy
from tests.unit.test_settings import dev

ROOT = Path(__file__).parents[3]


def fresh() -> str:
    return "sk-" + secrets.token_hex(24)


def entry(value: str, *, id: str = "app", environment: str = "prod", purpose: str = "client") -> LockedKey:
    return LockedKey(id=id, environment=environment, purpose=purpose, fingerprint=fingerprint(value))


@pytest.fixture
def lock_file(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "keys.lock.json"
    monkeypatch.setattr(key_lock.load, "__defaults__", (path,))
    return path


@pytest.fixture
def configured():
    def put(value: str) -> None:
        pulumi.runtime.set_all_config({"moonstack:keyValue-app": value}, ["moonstack:keyValue-app"])

    yield put
    pulumi.runtime.set_all_config({}, [])


def read(source: str = "config") -> None:
    group = {"source": source, "keys": [{"id": "app", "purpose": "client", "owner": "shop"}]}
    stack = Settings.from_mapping(dev() | {"keys": group})
    deploy(lambda _: key_versions(stack, pulumi.Config("moonstack")))


def refusal(source: str = "config") -> str:
    with pytest.raises(SettingsError) as caught:
        read(source)
    return str(caught.value)


def test_a_locked_key_is_accepted(lock_file, configured):
    value = fresh()
    key_lock.store([entry(value, environment="dev")], lock_file)
    configured(value)
    read()


def test_a_key_of_another_environment_is_refused(lock_file, configured):
    value = fresh()
    key_lock.store([entry(value)], lock_file)
    configured(value)
    said = refusal()
    assert "is key app of prod for client, and here app of dev for client" in said
    assert value not in said


def test_a_key_of_another_purpose_is_refused(lock_file, configured):
    value = fresh()
    key_lock.store([entry(value, environment="dev", purpose="smoke")], lock_file)
    configured(value)
    assert "of dev for smoke" in refusal()


def test_an_unlocked_key_is_refused_with_the_command_that_locks_it(lock_file, configured):
    key_lock.store([], lock_file)
    configured(fresh())
    assert "is not in keys.lock.json; add it: python -m rotation lock --stack dev" in refusal()


def test_a_generated_key_needs_no_lock_but_may_be_nobody_elses(lock_file, monkeypatch, tmp_path):
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    value = fresh()
    LocalKeys().put("app", "current", value)
    key_lock.store([], lock_file)
    read("local")
    key_lock.store([entry(value)], lock_file)
    assert "is key app of prod" in refusal("local")


def test_one_key_twice_in_the_lock_is_refused_when_written_and_when_read(lock_file):
    value = fresh()
    twice = [entry(value), entry(value, environment="pre")]
    with pytest.raises(SettingsError, match="of prod for client"):
        key_lock.store(twice, lock_file)
    rows = [
        {"id": k.id, "environment": k.environment, "purpose": k.purpose, "fingerprint": k.fingerprint} for k in twice
    ]
    lock_file.write_text(json.dumps({"schemaVersion": 1, "keys": rows}))
    with pytest.raises(SettingsError, match=r"keys\[1\]"):
        key_lock.load(lock_file)


def test_several_versions_of_a_key_are_one_key(lock_file):
    keys = [entry(fresh()), entry(fresh())]
    key_lock.store(keys, lock_file)
    assert set(key_lock.load(lock_file)) == set(keys)


@pytest.mark.parametrize("text", ["", "{", '{"schemaVersion": 2}', '{"keys": [{"id": "app"}]}'])
def test_a_malformed_lock_is_refused_with_its_name(lock_file, text):
    lock_file.write_text(text)
    with pytest.raises(SettingsError, match=r"keys\.lock\.json"):
        key_lock.load(lock_file)


def test_a_missing_lock_is_refused(lock_file):
    with pytest.raises(SettingsError, match="cannot be read"):
        key_lock.load(lock_file)


def test_the_committed_lock_is_sound_and_fits_the_stack_files():
    declared = {}
    for path in ROOT.glob("Pulumi.*.yaml"):
        config = yaml.safe_load(path.read_text())["config"]
        for key in config.get("moonstack:keys", {}).get("keys", []):
            declared[(config["moonstack:environment"], key["id"])] = key["purpose"]
    for key in key_lock.load():
        assert declared.get((key.environment, key.id)) == key.purpose, f"{key.id} of {key.environment}"
