"""Stack files as they are written: what Pulumi would read otherwise or refuse without saying where, and secrets that are none."""

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from local.rehearse import cli as rehearse
from settings.errors import SettingsError
from settings.settings import Settings
from settings.stack_file import groups_by_name
from tests.unit.test_settings import ROOT, dev

ENCRYPTED = "v1:3q2+7wAA:AAECAwQF/w=="
SALTED = "v1:AAECAwQFBgc=:v1:3q2+7wAA:AAEC"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "Pulumi.x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def said(path: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_stack_file(path)
    return str(caught.value)


def with_values(folder: Path, **values: Any) -> Path:
    """The dev stack with values of keys, `next` and `previous` after two underscores."""
    config = {f"moonstack:{key}": value for key, value in dev().items()}
    keys = {f"moonstack:keyValue-{name.replace('__', '.').replace('_', '-')}": value for name, value in values.items()}
    return written(folder, yaml.safe_dump({"encryptionsalt": SALTED, "config": config | keys}))


@pytest.mark.parametrize("stage", ["", "__next", "__previous"])
def test_the_encrypted_value_of_a_declared_key_is_valid_at_every_stage(tmp_path: Path, stage: str):
    assert Settings.from_stack_file(with_values(tmp_path, **{f"dev_client{stage}": {"secure": ENCRYPTED}}))


@pytest.mark.parametrize("shape", ["{}", ["{}"], {"clear": "{}"}, {"secure": ENCRYPTED, "clear": "{}"}])
def test_the_value_of_a_key_in_clear_text_is_refused_and_not_shown(tmp_path: Path, shape: Any):
    secret = secrets.token_hex(12)
    value = yaml.safe_load(yaml.safe_dump(shape).replace("{}", secret)) if shape != "{}" else secret
    line = said(with_values(tmp_path, dev_client=value))
    assert "moonstack:keyValue-dev-client: stands in the stack file in clear text; revoke that key" in line
    assert secret not in line


def test_the_value_of_a_key_that_is_not_declared_is_refused(tmp_path: Path):
    line = said(with_values(tmp_path, nothing={"secure": ENCRYPTED}, dev_client__old={"secure": ENCRYPTED}))
    assert "moonstack:keyValue-nothing: is the value of no declared key; declared: dev-client, dev-smoke" in line
    assert "pulumi config rm moonstack:keyValue-dev-client.old" in line


@pytest.fixture
def running() -> Iterator[Callable[..., Settings]]:
    """Loads dev as the running program does, with more configuration, of which the named keys are secret."""
    config = {
        f"moonstack:{key}": value if isinstance(value, str) else json.dumps(value) for key, value in dev().items()
    }

    def load(more: dict[str, str], secret: tuple[str, ...] = ()) -> Settings:
        pulumi.runtime.set_all_config(config | more, list(secret))
        return Settings.load(pulumi.Config("moonstack"))

    yield load
    pulumi.runtime.set_all_config({}, [])


def test_the_running_program_refuses_the_value_of_a_key_that_is_not_declared(running: Callable[..., Settings]):
    client, nothing = "moonstack:keyValue-dev-client", "moonstack:keyValue-nothing"
    assert running({client: "x"}, (client,))
    with pytest.raises(SettingsError, match="keyValue-nothing: is the value of no declared key"):
        running({nothing: "x"}, (nothing,))


def test_the_running_program_refuses_a_clear_value_though_keys_come_from_elsewhere(running: Callable[..., Settings]):
    client, value = "moonstack:keyValue-dev-client", "x" * 40
    with pytest.raises(SettingsError, match=f"{client}: stands in the stack file in clear text") as refused:
        running({client: value})
    assert running({}).keys.source != "config" and value not in str(refused.value)


@pytest.mark.parametrize("broken", ["x", "", "v1:abc", 5, None, ENCRYPTED + "!", "AAABAAECAwQFBgcICQoLDA0ODw=="])
@pytest.mark.parametrize("key", ["moonstack:keyValue-dev-client", "aws:secretKey"])
def test_what_pulumi_did_not_encrypt_is_refused_by_its_key(tmp_path: Path, key: str, broken: Any):
    document = yaml.safe_load(with_values(tmp_path).read_text())
    document["config"][key] = {"secure": broken}
    line = said(written(tmp_path, yaml.safe_dump(document)))
    assert f"{key}: holds nothing under secure that Pulumi encrypted (v1:…); pulumi config set --secret {key}" in line


def test_a_value_that_pulumis_service_encrypted_is_valid_where_no_other_way_is_named(tmp_path: Path):
    document = yaml.safe_load(with_values(tmp_path, dev_client={"secure": "AAABAAECAwQFBgcICQoLDA0ODw=="}).read_text())
    del document["encryptionsalt"]
    assert Settings.from_stack_file(written(tmp_path, yaml.safe_dump(document)))


@pytest.mark.parametrize("value", ["9999-12-31", "2028-13-01", "2028-12-31T10:00:00Z"])
def test_a_date_without_quotes_is_refused_where_it_stands(tmp_path: Path, value: str):
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    bare = text.replace("owner: developer}", f"owner: developer, expires: {value}}}")
    line = said(written(tmp_path, bare))
    number = next(n for n, each in enumerate(bare.splitlines(), 1) if value in each)
    assert f"moonstack:keys.keys[0].expires: '{value}': is a date" in line
    assert f"(line {number}); put it in quotes" in line
    if "13-01" not in value:
        quoted = text.replace("owner: developer}", f'owner: developer, expires: "{value}"}}')
        assert Settings.from_stack_file(written(tmp_path, quoted)).keys.keys[0].expires


def test_a_time_without_quotes_is_no_number(tmp_path: Path):
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    window = "engines: {enabled: false, schedule: [{role: decode, start: 10:30, end: '11:30', minReplicas: 1}]}"
    line = said(written(tmp_path, text.replace("engines: {enabled: false}", window)))
    assert "moonstack:autoscaling.engines.schedule[0].start: '10:30': is a date, a time" in line


@pytest.mark.parametrize("text", ["- a\n- b\n", "only text\n", "5\n"])
def test_a_stack_file_that_is_no_mapping_is_told_what_it_must_be(tmp_path: Path, text: str):
    assert "must be a mapping with config:; write the settings below config:" in said(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("config:\n  a: [1,\n  b: {", "line 3, column"),
        ("config:\n  a: 'open\n", "line 3, column"),
        ("config:\n\ta: 1\n", "line 2, column"),
        ("config:\n  a: *nowhere\n", "line 2, column"),
        ("config:\n  a: " + "9" * 5000, "line 2, column"),
        (b"config:\n  a: \xff\n", "no UTF-8 text, line 2"),
        ("config:\n  a: \x07\n", "U+0007"),
    ],
)
def test_what_can_not_be_read_is_told_with_its_line_in_our_words(tmp_path: Path, text: str | bytes, words: str):
    line = said(written(tmp_path, text))
    assert "cannot be read: " in line and words in line, line
    assert not any(raw in line for raw in ("unicode string", "byte string", "codec", ' in "<')), line


def test_groups_are_found_with_our_namespace_and_without_and_never_twice():
    assert groups_by_name({"moonstack:nodePools": [1], "models": [2]}) == {"nodePools": [1], "models": [2]}
    with pytest.raises(ValueError, match="models is written twice, with and without moonstack:; remove one"):
        groups_by_name({"moonstack:models": [1], "models": [2]})


def test_groups_to_rehearse_instead_may_be_copied_from_a_stack_file(tmp_path: Path):
    path = written(tmp_path, "moonstack:nodePools: [{name: x}]\n")
    assert rehearse._groups(path) == {"nodePools": [{"name": "x"}]}  # pyright: ignore[reportPrivateUsage]
