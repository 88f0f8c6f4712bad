"""A key that has ended is sent nowhere: one line says so, with the command that brings its successor."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from settings.settings import Settings
from smoke.__main__ import app
from smoke.errors import PermanentError
from smoke.keys import VARIABLE, read_key, read_smoke_key
from tests.unit.test_settings import dev

PAST = (datetime.now(UTC) - timedelta(days=1)).isoformat()
CHANNEL = {"enabled": True, "baseUrl": "https://api.example.com", "key": "out"}


def stack(*ended: str, channel: dict[str, Any] | None = None) -> Settings:
    purposes = {"app": "client", "probe": "smoke", "out": "fallback", "other": "debug"}
    keys = [
        {"id": key_id, "purpose": purpose, "owner": "x"} | ({"expires": PAST} if key_id in ended else {})
        for key_id, purpose in purposes.items()
    ]
    values = dev() | {"keys": {"source": "local", "keys": keys}} | ({"channel": channel} if channel else {})
    return Settings.from_mapping(values, as_deployed=True)


class Reached(Exception):
    """Somebody went on to the cluster."""


@pytest.fixture
def on(monkeypatch):
    """A command on a stack; raises Reached as soon as it turns to the cluster."""

    async def connect(*_: Any) -> Any:
        raise Reached

    monkeypatch.setattr("smoke.cluster.Cluster.connect", connect)
    monkeypatch.setenv(VARIABLE, "sk-" + secrets.token_hex(24))

    def run(command: str, settings: Settings):
        def found(path: Any, *, as_deployed: bool = False) -> Settings:
            assert as_deployed, "every ended key would be an error of its own"
            return settings

        monkeypatch.setattr(Settings, "from_stack_file", found)
        return CliRunner().invoke(app, [command])

    return run


@pytest.mark.parametrize("command", ["pulse", "drill"])
@pytest.mark.parametrize(
    ("key_id", "channel", "line"),
    [
        ("probe", None, "make rotate STACK=dev ID=probe"),
        ("out", CHANNEL, "make rotate STACK=dev ID=out < FILE, with the channel's new key in it"),
    ],
)
def test_load_with_an_ended_key_of_its_own_is_refused_in_one_line_before_anything_is_reached(
    on, command, key_id, channel, line
):
    result = on(command, stack(key_id, channel=channel))
    assert result.exit_code == 2
    (said,) = result.output.strip().splitlines()
    assert f"key {key_id} has expired on {PAST[:10]}" in said
    assert f"write its next end at expires in Pulumi.dev.yaml, then {line}" in said


@pytest.mark.parametrize("command", ["pulse", "drill"])
def test_anothers_ended_key_keeps_nobody_from_a_load(on, command):
    result = on(command, stack("app", "other", channel=CHANNEL))
    assert isinstance(result.exception, Reached)


async def test_no_probe_reads_an_ended_key_wherever_its_value_is(monkeypatch):
    monkeypatch.setenv(VARIABLE, "sk-" + secrets.token_hex(24))
    with pytest.raises(PermanentError, match="key probe has expired"):
        await read_smoke_key(stack("probe"), None)
    with pytest.raises(PermanentError, match="key other has expired"):
        await read_key(stack("other"), "other", None)
    assert await read_smoke_key(stack("app"), None)
