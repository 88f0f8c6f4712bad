"""What the program declares for keys: values secret, names plain, and only valid keys in the gateway's list."""

import base64
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from components.api_keys import ApiKeys, ApiKeysArgs
from components.key_source import KeyVersion
from rules import labels, names
from rules.envoy_keys import FILE, client_keys
from rules.fingerprint import fingerprint
from settings.key_values import Stage
from settings.keys import KeySettings
from tests.unit.pulumi_engine import Registered, deploy, holds_secret, plain, secret

NOW = datetime(2026, 6, 1, tzinfo=UTC)
END = NOW + timedelta(days=30)
CLIENT = KeySettings(id="app", purpose="client", owner="shop", expires=END)
CHANNEL = KeySettings(id="channel", purpose="fallback", owner="gateway")


def fresh() -> str:
    return "sk-" + secrets.token_hex(24)


def version(key: KeySettings, value: str, stage: Stage = "current") -> KeyVersion:
    return KeyVersion(id=key.id, stage=stage, value=pulumi.Output.secret(value), fingerprint=fingerprint(value))


def declared(*pairs: tuple[KeySettings, str, Stage], also=lambda keys, context: None) -> dict[str, Registered]:
    def program(context):
        versions = tuple(version(key, value, stage) for key, value, stage in pairs)
        keys = tuple(dict.fromkeys(key for key, _, _ in pairs))
        also(ApiKeys("keys", ApiKeysArgs(keys=keys, versions=versions, now=NOW), context), context)

    return {one.name: one for one in deploy(program)}


def decoded(one: Registered, file: str) -> str:
    return base64.b64decode(plain(one.inputs["data"])[file]).decode()


def test_every_value_is_a_secret_and_every_name_is_plain():
    found = declared((CLIENT, fresh(), "current"), (CHANNEL, fresh(), "current"))
    objects = [one for one in found.values() if one.type == "kubernetes:core/v1:Secret"]
    assert len(objects) == 4
    for one in objects:
        data = one.inputs["data"]
        assert secret(data) or all(secret(value) for value in data.values()), one.name
        assert not holds_secret(one.inputs["metadata"]), one.name


def test_no_value_stands_outside_the_data_of_a_secret():
    values = [fresh(), fresh()]
    found = declared((CLIENT, values[0], "current"), (CHANNEL, values[1], "current"))
    outside = [{k: v for k, v in one.inputs.items() if k != "data"} | {"name": one.name} for one in found.values()]
    assert not any(value in repr(outside) for value in values)


def test_a_pod_that_names_the_secrets_does_not_become_secret():
    def pod(keys: ApiKeys, context):
        client_keys: Any = keys.resources.client_keys
        volume: Any = {"name": "keys", "secret": {"secret_name": client_keys.metadata["name"]}}
        kubernetes.core.v1.Pod(
            "pod", spec={"containers": [{"name": "x"}], "volumes": [volume]}, opts=context.opts(keys)
        )

    found = declared((CLIENT, fresh(), "current"), also=pod)
    assert not holds_secret(found["pod"].inputs["spec"])
    assert plain(found["pod"].inputs["spec"])["volumes"][0]["secret"]["secretName"] == names.CLIENT_KEYS


def test_the_gateway_gets_every_accepted_version_of_a_client_key_and_no_channel_key():
    old, new, channel = fresh(), fresh(), fresh()
    found = declared((CLIENT, old, "current"), (CLIENT, new, "next"), (CHANNEL, channel, "current"))
    entries = client_keys(decoded(found[names.CLIENT_KEYS], FILE))
    assert {entry.value for entry in entries} == {old, new}
    assert {entry.id for entry in entries} == {"app"}


def test_the_channel_gets_only_the_current_version_under_the_keys_id():
    old, new = fresh(), fresh()
    found = declared((CHANNEL, old, "current"), (CHANNEL, new, "next"))
    assert list(plain(found[names.CHANNEL_KEYS].inputs["data"])) == ["channel"]
    assert decoded(found[names.CHANNEL_KEYS], "channel") == old


@pytest.mark.parametrize(("offset", "accepted"), [(-timedelta(seconds=1), 1), (timedelta(seconds=1), 0)])
def test_a_key_counts_only_from_its_not_before(offset, accepted):
    key = CLIENT.model_copy(update={"not_before": NOW + offset})
    found = declared((key, fresh(), "current"))
    assert len(client_keys(decoded(found[names.CLIENT_KEYS], FILE))) == accepted


def test_a_version_is_immutable_and_carries_what_may_be_shown():
    value = fresh()
    found = declared((CLIENT, value, "current"))
    one = found[names.key_version("app", fingerprint(value))]
    metadata = plain(one.inputs["metadata"])
    assert one.inputs["immutable"] is True
    assert metadata["labels"][labels.PURPOSE] == "client"
    assert metadata["labels"][labels.ENVIRONMENT] == "dev"
    assert metadata["annotations"][labels.KEY_FINGERPRINT] == fingerprint(value)
    assert metadata["annotations"][labels.EXPIRES] == END.isoformat()


def test_the_gateways_secrets_stay_mutable_so_that_pods_see_a_change_without_a_rollout():
    found = declared((CLIENT, fresh(), "current"))
    assert "immutable" not in found[names.CLIENT_KEYS].inputs
    assert "immutable" not in found[names.CHANNEL_KEYS].inputs
