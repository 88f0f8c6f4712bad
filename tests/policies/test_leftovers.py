"""The audit finds values that live on in a Secret beyond their life, and nothing where each key is in its own."""

from datetime import UTC, datetime, timedelta
from typing import Any

import kr8s
import pytest
import yaml
from typer.testing import CliRunner

from policies.__main__ import app
from policies.audit import cli, cluster, leftovers
from policies.audit.run import audit
from policies.audit.search import Canaries
from rules import labels, names
from rules.envoy_keys import FILE, ClientKey, client_keys_file
from settings.settings import Settings
from tests.policies.builders import fake_key
from tests.policies.test_audit import Api, b64, pod, thing
from tests.unit.test_settings import dev

NOW = datetime.now(UTC)
VALUES = {name: fake_key() for name in ("app", "app-old", "channel")}


def stack(app_ends: datetime | None = None, channel_ends: datetime | None = None, **more: Any) -> Settings:
    def key(key_id: str, purpose: str, end: datetime | None) -> dict[str, Any]:
        return {"id": key_id, "purpose": purpose, "owner": "x"} | ({"expires": end.isoformat()} if end else {})

    keys = [key("app", "client", app_ends), key("channel", "fallback", channel_ends)]
    return Settings.from_mapping(dev() | {"keys": {"source": "local", "keys": keys} | more}, as_deployed=True)


def secret(name: str, data: dict[str, str], **own: str) -> Any:
    metadata = {"name": name, "labels": own}
    return thing(metadata=metadata, data={file: b64(value) for file, value in data.items()})


def of_version(name: str, key_id: str, purpose: str) -> Any:
    return secret(f"key-{name}", {"value": VALUES[name]}, **{labels.KEY_ID: key_id, labels.PURPOSE: purpose})


def listed(*versions: str) -> Any:
    return secret(names.CLIENT_KEYS, {FILE: client_keys_file(ClientKey("app", VALUES[one]) for one in versions)})


def channel(value: str = VALUES["channel"], key_id: str = "channel") -> Any:
    return secret(names.CHANNEL_KEYS, {key_id: value})


def found(settings: Settings, *secrets: Any) -> list[tuple[str, str]]:
    api: Any = Api(pod(), secrets=list(secrets))
    result = audit([leftovers.place(api, settings, "dev")], Canaries())
    assert result.looked[0].unread is None
    assert not any(value in repr(result) for value in VALUES.values())
    return [(one.where.removeprefix("Secret "), one.path) for one in result.sightings]


APP, OLD, CHANNEL = (
    of_version("app", "app", "client"),
    of_version("app-old", "app", "client"),
    of_version("channel", "channel", "fallback"),
)
CERTIFICATE = secret("gateway-tls", {"tls.key": "x"})


@pytest.mark.parametrize(
    "secrets",
    [
        [APP, CHANNEL, listed("app"), channel(), CERTIFICATE],
        [APP, OLD, CHANNEL, listed("app", "app-old"), channel()],
        [APP, CHANNEL, secret(names.CLIENT_KEYS, {}), secret(names.CHANNEL_KEYS, {})],
    ],
    ids=["one version each", "a rotation under way", "not delivered yet"],
)
def test_keys_in_their_life_are_no_finding(secrets):
    later = NOW + timedelta(days=1)
    assert found(stack(later, later), *secrets) == []


def test_every_secret_that_holds_an_ended_key_is_found():
    ended = NOW - timedelta(minutes=2)
    assert found(stack(ended), APP, listed("app"), CHANNEL, channel()) == [
        ("key-app", "data"),
        (names.CLIENT_KEYS, f"data.{FILE}"),
    ]
    assert found(stack(None, ended), APP, CHANNEL, listed("app"), channel()) == [
        ("key-channel", "data"),
        (names.CHANNEL_KEYS, "data.channel"),
    ]


def test_an_emptied_file_holds_nothing_and_the_agent_has_its_minute():
    ended = NOW - timedelta(minutes=2)
    assert found(stack(None, ended), channel("")) == []
    just_now = datetime.now(UTC) - timedelta(seconds=5)
    assert found(stack(None, just_now), channel()) == []


def test_a_key_that_left_the_stack_file_is_found_in_each_place():
    gone = of_version("app", "gone", "client")
    entry = secret(names.CLIENT_KEYS, {FILE: client_keys_file([ClientKey("gone", VALUES["app"])])})
    assert found(stack(), gone, entry, channel(key_id="former")) == [
        ("key-app", "data"),
        (names.CLIENT_KEYS, f"data.{FILE}"),
        (names.CHANNEL_KEYS, "data.former"),
    ]


def test_an_outbound_value_under_an_inbound_keys_name_is_found():
    assert found(stack(), channel(key_id="app")) == [(names.CHANNEL_KEYS, "data.app")]


def test_a_version_that_was_replaced_is_found_in_the_gateways_list():
    assert found(stack(), APP, listed("app", "app-old")) == [(names.CLIENT_KEYS, f"data.{FILE}")]


def test_a_list_that_nobody_can_read_is_said():
    api: Any = Api(pod(), secrets=[secret(names.CLIENT_KEYS, {FILE: "other: text"})])
    result = audit([leftovers.place(api, stack(), "dev")], Canaries())
    assert result.exit_code == 2
    assert "not a keys.yaml" in (result.looked[0].unread or "")


def test_the_command_looks_at_a_stack_whose_key_has_ended(tmp_path, monkeypatch):
    settings = stack(NOW - timedelta(days=1)).model_dump(mode="json", by_alias=True, exclude_none=True)
    kept = {name: settings[name] for name in dev()}
    text = {f"moonstack:{name}": value for name, value in kept.items()}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": text}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    monkeypatch.setattr(cli.engine, "places", lambda command: [])
    monkeypatch.setattr(cluster, "places", lambda api, namespace: [])
    monkeypatch.setattr(kr8s, "api", lambda **options: Api(pod(), secrets=[APP]))
    result = CliRunner().invoke(app, ["audit", "--stack", "dev"])
    assert "a value of key app, which has ended" in result.output
    assert "make rotate STACK=dev ID=app" in result.output
    assert result.exit_code == 1
