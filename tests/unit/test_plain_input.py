"""What no key takes, tried on every key there is: true as a number, text that can't be read, credentials in a URL."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import ValidationError

from settings.base import Group
from settings.errors import SettingsError
from settings.plain_input import LINES
from settings.settings import Settings
from tests.unit.test_settings import ROOT, dev, lines


def groups(of: type[Group] = Settings) -> Iterator[type[Group]]:
    """Every group of the settings."""
    yield of
    for field in of.model_fields.values():
        for one in kinds(field.annotation):
            if isinstance(one, type) and issubclass(one, Group):
                yield from groups(one)


def kinds(annotation: Any) -> set[Any]:
    inner = get_args(annotation)
    return set().union(*map(kinds, inner)) if inner else {annotation}


def keys(*wanted: type) -> list[Any]:
    """Every key that takes one of these types, by its group."""
    found = {
        (group, name): field
        for group in groups()
        for name, field in group.model_fields.items()
        if kinds(field.annotation) & set(wanted)
    }
    return [pytest.param(group, name, id=f"{group.__name__}.{name}") for group, name in found]


def problem(group: type[Group], name: str, value: Any) -> str:
    """What is said of one key's value; empty if nothing is."""
    alias = group.model_fields[name].alias or name
    with pytest.raises(ValidationError) as caught:  # other keys of the group may be required
        group.model_validate({alias: value, "no such key": 1})
    return "; ".join(each["msg"] for each in caught.value.errors() if each["loc"][0] == alias)


def shaped(group: type[Group], name: str, value: Any) -> Any:
    """A value as the key takes it: in a list, in a mapping, or alone."""
    text = str(group.model_fields[name].annotation)
    return [value] if text.startswith("tuple[") else {"a": value} if text.startswith("dict[") else value


@pytest.mark.parametrize(("group", "name"), keys(int, float))
def test_true_is_no_number(group: type[Group], name: str):
    assert "are no numbers" in problem(group, name, shaped(group, name, True))


@pytest.mark.parametrize("bad", ["a\x1b[31mb", "a\u202eb", "a\u2028b"])
@pytest.mark.parametrize(("group", "name"), keys(str))
def test_text_that_can_not_be_read_is_refused(group: type[Group], name: str, bad: str):
    assert "can't be read" in problem(group, name, shaped(group, name, bad))


@pytest.mark.parametrize(("group", "name"), keys(str))
def test_only_texts_of_several_lines_take_line_breaks(group: type[Group], name: str):
    refused = "can't be read" in problem(group, name, shaped(group, name, "one\ntwo"))
    assert refused is (LINES not in group.model_fields[name].metadata)


@pytest.mark.parametrize(
    ("path", "key"),
    [("smoke", "endpoint"), ("channel", "baseUrl"), ("observability", "runbookBase")],
)
@pytest.mark.parametrize("shape", ["https://user:{}@host", "https://user:{}/x@host", "https://{}@host/path"])
def test_a_url_with_credentials_is_refused_and_not_shown(path: str, key: str, shape: str):
    secret = secrets.token_hex(12)
    values = dev()
    values[path] = {**values.get(path, {}), key: shape.format(secret)}
    said = "\n".join(lines(values))
    assert f"moonstack:{path}.{key}" in said
    assert secret not in said


@pytest.mark.parametrize(("group", "name"), keys(str))
def test_credentials_in_a_url_are_refused_in_every_text(group: type[Group], name: str):
    assert "a user or a password" in problem(group, name, shaped(group, name, "s3://user:word@host/path"))


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_a_secret_inside_a_wrong_kind_of_value_is_not_shown(wrap: Any):
    secret = secrets.token_hex(24)
    for text in (f"https://u:{secret}@h", "sk-" + secret):
        said = "\n".join(lines(dev() | {"environment": wrap(text)}))
        assert "moonstack:environment" in said and secret not in said


def test_a_url_with_an_at_sign_in_its_path_is_none_with_credentials():
    values = dev()
    values["smoke"]["endpoint"] = "https://host/a@b"
    assert str(Settings.from_mapping(values).smoke.endpoint) == "https://host/a@b"


@pytest.mark.parametrize("host", ["", "a b", " ", "-a", "a..b", "https://a", "a/b", "a:443", "1.2.3.4.5 "])
def test_what_is_no_host_gets_no_certificate(host: str):
    values = dev()
    values["gateway"]["tls"]["hosts"] = ["localhost", host]
    assert any(line.startswith("moonstack:gateway.tls.hosts") for line in lines(values))


@pytest.mark.parametrize("host", ["localhost", "llm.example.com", "*.example.com", "10.0.0.1", "::1"])
def test_names_and_addresses_are_hosts(host: str):
    values = dev()
    values["gateway"]["tls"]["hosts"] = [host]
    assert Settings.from_mapping(values).gateway.tls.hosts == (host,)


def test_a_host_is_in_lower_case_as_the_api_server_wants_it():
    values = dev()
    values["gateway"]["tls"]["hosts"] = ["LLM.Example.com"]
    assert Settings.from_mapping(values).gateway.tls.hosts == ("llm.example.com",)


@pytest.mark.parametrize("address", ["router", "router:", "router:http", "router:0", "router:70000", "a b:80", ":80"])
def test_an_address_without_a_usable_port_is_refused(address: str):
    values = dev()
    values["gateway"]["kthenaRouter"] = address
    assert any(line.startswith("moonstack:gateway.kthenaRouter") for line in lines(values))


def stack_file(folder: Path, config: dict[str, Any], **top: Any) -> Path:
    path = folder / "Pulumi.x.yaml"
    own = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    path.write_text(yaml.safe_dump({"config": own | config, **top}))
    return path


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"moonstak:warmPool": {}}, "moonstak:warmPool: is not read: its namespace is moonstak; did you mean moonstack:warmPool?"),
        ({"Moonstack:warmPool": {}}, "did you mean moonstack:warmPool?"),
        ({"warmPol": {}}, "warmPol: has no namespace; did you mean moonstack:warmPool?"),
        ({"moonstack": {"warmPool": {}}}, "moonstack: has no namespace; write one of ours as moonstack:<group>"),
    ],
)  # fmt: skip
def test_a_key_beside_our_namespace_is_answered_with_what_was_meant(tmp_path: Path, config: dict[str, Any], said: str):
    with pytest.raises(SettingsError) as caught:
        Settings.from_stack_file(stack_file(tmp_path, config))
    assert said in str(caught.value)


def test_a_key_of_ours_that_is_not_below_config_is_refused(tmp_path: Path):
    with pytest.raises(SettingsError, match="moonstack:warmPool: stands outside of config"):
        Settings.from_stack_file(stack_file(tmp_path, {}, **{"moonstack:warmPool": {"enabled": True}}))


def test_keys_of_other_programs_are_left_alone(tmp_path: Path):
    others = {"kubernetes:namespace": "x", "aws:region": "eu-west-1", "mooncake:master": "x", "pulumi:tags": {}}
    assert Settings.from_stack_file(stack_file(tmp_path, others, encryptionsalt="v1:x")).environment == "dev"


def test_a_file_that_can_not_be_read_is_named_without_a_value_that_there_is_not(tmp_path: Path):
    path = tmp_path / "Pulumi.x.yaml"
    path.mkdir()
    with pytest.raises(SettingsError) as caught:
        Settings.from_stack_file(path)
    assert "Pulumi.x.yaml: cannot be read: is a directory; correct the file" in str(caught.value)


def test_devs_endpoint_follows_the_local_clusters_port(monkeypatch: pytest.MonkeyPatch):
    assert Settings.from_mapping(dev()).smoke.base_url == "https://127.0.0.1:8443"
    monkeypatch.setenv("MOONSTACK_PORT", "9443")
    assert Settings.from_mapping(dev()).smoke.base_url == "https://127.0.0.1:9443"
    monkeypatch.setenv("MOONSTACK_PORT", "https")
    assert "moonstack:smoke.endpoint: 'local': MOONSTACK_PORT=https is no port; example: 8443" in lines(dev())
