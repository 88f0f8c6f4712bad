"""Where values come from, and what is said when they don't."""

import asyncio
import secrets
import stat

import pulumi
import pytest
from moto import mock_aws

from components.key_source import OFFLINE, key_values, key_versions
from rules.fingerprint import fingerprint
from settings import key_lock
from settings.errors import SettingsError
from settings.key_values.local import LocalKeys
from settings.key_values.secrets_manager import ACCEPTED, SecretsManagerKeys
from settings.settings import Settings
from tests.unit.pulumi_engine import deploy
from tests.unit.test_settings import dev


def fresh() -> str:
    return "sk-" + secrets.token_hex(24)


def settings(source: str, *ids: str) -> Settings:
    keys = [{"id": key_id, "purpose": "client", "owner": "test"} for key_id in ids]
    group = {"source": source, "keys": keys} | ({"region": "us-east-1"} if source == "secretsManager" else {})
    return Settings.from_mapping(dev() | {"keys": group})


def read(stack: Settings, *, preview: bool = False) -> dict[tuple[str, str], str]:
    found = {}
    deploy(
        lambda _: found.update({(v.id, v.stage): v.fingerprint for v in key_versions(stack, config())}), preview=preview
    )
    return found


def config() -> pulumi.Config:
    return pulumi.Config("moonstack")


def refusal(stack: Settings, **how) -> str:
    with pytest.raises(SettingsError) as caught:
        read(stack, **how)
    return str(caught.value)


@pytest.fixture(autouse=True)
def lock(monkeypatch):
    """Takes fingerprints in; the lock itself is tested in test_key_lock.py."""
    monkeypatch.setattr(key_lock, "problems", lambda settings, fingerprints, lock: [])


@pytest.fixture
def encrypted():
    def put(values: dict[str, str], secret_keys: list[str] | None = None) -> None:
        names = {f"moonstack:keyValue-{key}": value for key, value in values.items()}
        pulumi.runtime.set_all_config(names, list(names) if secret_keys is None else secret_keys)

    yield put
    pulumi.runtime.set_all_config({}, [])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> LocalKeys:
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    return LocalKeys()


@pytest.fixture
def aws(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield SecretsManagerKeys("dev", "moonstack/", "us-east-1")


def test_encrypted_configuration_is_read_with_its_stages(encrypted):
    old, new = fresh(), fresh()
    encrypted({"app": old, "app.next": new})
    assert read(settings("config", "app")) == {("app", "current"): fingerprint(old), ("app", "next"): fingerprint(new)}


def test_a_value_in_clear_text_in_the_stack_file_is_refused(encrypted):
    value = fresh()
    encrypted({"app": value}, secret_keys=[])
    said = refusal(settings("config", "app"))
    assert "moonstack:keyValue-app" in said
    assert "clear text" in said
    assert value not in said


def test_every_missing_and_malformed_value_is_named_in_one_go_without_the_value(encrypted):
    body = secrets.token_hex(24)
    encrypted({"one": f"Bearer {body}", "two": "sk-xxxx"})
    said = refusal(settings("config", "one", "two", "three"))
    assert "carries its own 'Bearer '" in said
    assert "is a placeholder" in said
    assert "keyValue-three (pulumi config set --secret" in said
    assert body not in said


def test_one_value_for_two_keys_is_refused(encrypted):
    value = fresh()
    encrypted({"one": value, "two": value})
    said = refusal(settings("config", "one", "two"))
    assert "moonstack:keys.two" in said
    assert "is the value of key one too" in said


def test_values_reach_the_program_as_secrets(encrypted):
    encrypted({"app": fresh()})
    seen = []

    def program(_):
        seen.extend(key_values(settings("config", "app"), config()).values())

    deploy(program)
    assert seen
    assert asyncio.run(seen[0].is_secret())


def test_local_files_are_private_and_hold_all_stages(folder):
    old, new = fresh(), fresh()
    folder.put("app", "current", old)
    folder.put("app", "next", new)
    assert stat.S_IMODE(folder.path("app").stat().st_mode) == 0o600
    assert read(settings("local", "app")) == {("app", "current"): fingerprint(old), ("app", "next"): fingerprint(new)}


def test_a_version_that_two_stages_hold_is_declared_once(folder):
    value = fresh()
    folder.put("app", "current", value)
    folder.put("app", "previous", value)
    assert read(settings("local", "app")) == {("app", "current"): fingerprint(value)}


def test_a_missing_local_file_is_named_by_its_place(folder):
    assert "keys/app of the state directory" in refusal(settings("local", "app"))


def test_placeholders_serve_previews_and_offline_verbs_and_are_refused_by_up(monkeypatch):
    stack = settings("placeholder", "app")
    assert len(read(stack, preview=True)) == 1
    assert "placeholders are for previews" in refusal(stack)
    monkeypatch.setenv(OFFLINE, "1")
    assert len(read(stack)) == 1


def test_secrets_manager_gives_the_current_pending_and_still_accepted_versions(aws):
    client = aws.client()
    old, now, new = fresh(), fresh(), fresh()
    made = client.create_secret(Name=aws.name("app"), SecretString=old)
    client.put_secret_value(SecretId=aws.name("app"), SecretString=now)
    client.update_secret_version_stage(
        SecretId=aws.name("app"), VersionStage=ACCEPTED, MoveToVersionId=made["VersionId"]
    )
    client.put_secret_value(SecretId=aws.name("app"), SecretString=new, VersionStages=["AWSPENDING"])
    assert aws.read(["app"]) == {"app": {"current": now, "next": new, "previous": old}}


def test_a_former_version_without_the_mark_is_no_longer_accepted(aws):
    client = aws.client()
    client.create_secret(Name=aws.name("app"), SecretString=fresh())
    now = fresh()
    client.put_secret_value(SecretId=aws.name("app"), SecretString=now)
    assert aws.read(["app"]) == {"app": {"current": now}}


def test_thirty_keys_take_two_batched_reads_and_no_single_ones(aws, monkeypatch):
    client = aws.client()
    ids = [f"key{number}" for number in range(30)]
    for key_id in ids:
        client.create_secret(Name=aws.name(key_id), SecretString=fresh())
    calls = []
    client.meta.events.register("before-call.secrets-manager", lambda model, **_: calls.append(model.name))
    monkeypatch.setattr(aws, "client", lambda: client)
    assert sorted(aws.read(ids)) == sorted(ids)
    assert calls.count("BatchGetSecretValue") == 2
    assert "GetSecretValue" not in calls


def test_another_environments_secret_is_never_read(aws):
    SecretsManagerKeys("prod", "moonstack/", "us-east-1").client().create_secret(
        Name="moonstack/prod/app", SecretString=fresh()
    )
    assert aws.read(["app"]) == {}
    assert "Secrets Manager secret moonstack/dev/app" in refusal(settings("secretsManager", "app"))


def test_an_unreachable_secrets_manager_is_one_clear_line(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    said = refusal(settings("secretsManager", "app"))
    assert "could not be read (EndpointConnectionError)" in said
    assert len(said.splitlines()) == 2
