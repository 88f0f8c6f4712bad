"""With external-secrets no key enters the program's resources; the operator is told where to find it."""

import base64
import re
import secrets
from datetime import UTC, datetime

import pulumi
import pytest

from components.api_keys import ApiKeys, ApiKeysArgs
from components.external_keys import EVERY_MINUTE, ONCE, ExternalStore, external_secret
from components.key_source import KeyVersion
from rules import labels, names
from rules.envoy_keys import FILE, client_keys
from rules.fingerprint import fingerprint
from settings.errors import SettingsError
from settings.key_values import Stage
from settings.key_values.secrets_manager import LABELS
from settings.settings import Settings
from tests.unit.pulumi_engine import Registered, deploy, plain
from tests.unit.test_settings import dev

KEYS = {
    "source": "secretsManager",
    "region": "us-east-1",
    "delivery": "external-secrets",
    "store": {"name": "aws"},
    "keys": [
        {"id": "app", "purpose": "client", "owner": "shop"},
        {"id": "channel", "purpose": "fallback", "owner": "gateway"},
    ],
}


def stack(**keys) -> Settings:
    return Settings.from_mapping(dev() | {"keys": KEYS | keys})


def version(key_id: str, value: str, stage: Stage = "current") -> KeyVersion:
    return KeyVersion(id=key_id, stage=stage, value=pulumi.Output.secret(value), fingerprint=fingerprint(value))


@pytest.fixture
def values() -> dict[str, str]:
    return {name: "sk-" + secrets.token_hex(24) for name in ("app", "next", "channel")}


@pytest.fixture
def declared(values) -> dict[str, Registered]:
    def program(context):
        versions = (
            version("app", values["app"]),
            version("app", values["next"], "next"),
            version("channel", values["channel"]),
        )
        ApiKeys("keys", ApiKeysArgs.of(stack(), versions), context)

    return {one.name: one for one in deploy(program)}


def test_no_value_is_in_any_input(declared, values):
    seen = repr([one.inputs for one in declared.values()])
    assert not any(value in seen for value in values.values())
    listed = base64.b64decode(plain(declared[names.CLIENT_KEYS].inputs)["data"][FILE]).decode()
    assert client_keys(listed) == [], "the key agent fills it; without the file Envoy would never open its port"


def test_each_version_is_fetched_by_its_label_when_it_is_declared_and_when_its_declaration_changes(declared, values):
    one = plain(declared[names.key_version("app", fingerprint(values["next"]))].inputs)
    spec = one["spec"]
    assert one["kind"] == "ExternalSecret"
    assert spec["secretStoreRef"] == {"name": "aws", "kind": "SecretStore"}
    assert spec["data"] == [{"secretKey": "value", "remoteRef": {"key": "moonstack/dev/app", "version": "AWSPENDING"}}]
    assert (spec["refreshPolicy"], spec["refreshInterval"]) == ("OnChange", "0")
    assert "immutable" not in spec["target"], (
        "the operator would leave the label `next` on a version that became current"
    )
    template = spec["target"]["template"]["metadata"]
    assert template["labels"][labels.KEY_ID] == "app"
    assert template["annotations"][labels.KEY_FINGERPRINT] == fingerprint(values["next"])


def test_the_channel_key_follows_the_current_label(declared):
    spec = plain(declared[names.CHANNEL_KEYS].inputs)["spec"]
    assert spec["data"] == [
        {"secretKey": "channel", "remoteRef": {"key": "moonstack/dev/channel", "version": "AWSCURRENT"}}
    ]
    assert (spec["refreshPolicy"], spec["refreshInterval"]) == ("Periodic", "1m")


def test_the_operator_empties_a_channel_key_at_its_end(values):
    """A Secret of the operator is rendered by its templates with every refresh; the clock is in them (`now`, of sprig)."""
    end = datetime(2030, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    keys = [dict(KEYS["keys"][0]), {**KEYS["keys"][1], "expires": end.isoformat()}]

    def program(context):
        ApiKeys("keys", ApiKeysArgs.of(stack(keys=keys), (version("channel", values["channel"]),)), context)

    found = {one.name: plain(one.inputs) for one in deploy(program)}
    template = found[names.CHANNEL_KEYS]["spec"]["target"]["template"]
    seconds = int(end.timestamp()) + 1
    assert template["data"] == {
        "channel": f'{{{{ if lt (now).Unix {seconds} }}}}{{{{ index . "channel" }}}}{{{{ end }}}}'
    }
    assert labels.KEY_ENDS not in template["metadata"].get("annotations", {}), "nobody else takes it away"
    kept = found[names.key_version("channel", fingerprint(values["channel"]))]["spec"]["target"]["template"]
    assert "data" not in kept, "what is fetched once is rendered once"


def test_an_external_secret_is_exactly_what_the_operator_is_to_be_told():
    """Every field is of `ExternalSecret` v1 (external-secrets.io, CRD of August 2026, checked with unknown fields refused); with these,
    operator 2.9.0 against a Secrets Manager kept values through a promotion and moved the labels along."""
    store = ExternalStore(name="aws", kind="ClusterSecretStore", environment="prod", prefix="llm/")
    shown = {"labels": {"moonstack.dev/key-id": "app"}, "annotations": {"moonstack.dev/owner": "shop"}}
    metadata = {"name": "key-app-0a1b2c3d", "namespace": "llm", **shown}
    made = external_secret(store, metadata, {"value": ("app", "previous")}, refresh=ONCE)
    assert made == {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": metadata | {"annotations": {**shown["annotations"], "pulumi.com/waitFor": "condition=Ready"}},
        "spec": {
            "refreshPolicy": "OnChange",
            "refreshInterval": "0",
            "secretStoreRef": {"name": "aws", "kind": "ClusterSecretStore"},
            "target": {
                "name": "key-app-0a1b2c3d",
                "template": {"type": "Opaque", "metadata": shown, "mergePolicy": "Merge"},
            },
            "data": [{"secretKey": "value", "remoteRef": {"key": "llm/prod/app", "version": LABELS["previous"]}}],
        },
    }
    assert metadata["annotations"] == {"moonstack.dev/owner": "shop"}, "the Secret's own annotations stay as they are"


@pytest.mark.parametrize("refresh", [ONCE, EVERY_MINUTE])
def test_names_that_the_operator_would_refuse_never_reach_it(refresh):
    """The operator's patterns for a Secret's file and for names; ids are DNS labels, so they always fit."""
    store = ExternalStore.of(stack())
    assert store is not None
    metadata = {"name": names.key_version("a" * 63, "0" * 32), "labels": {}}
    made = external_secret(store, metadata, {"a-0": ("a-0", "current")}, refresh=refresh)
    (entry,) = made["spec"]["data"]
    assert re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", entry["secretKey"])
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", made["spec"]["target"]["name"])
    assert len(made["spec"]["target"]["name"]) <= 253
    assert entry["remoteRef"] == {"key": "moonstack/dev/a-0", "version": "AWSCURRENT"}


def test_the_ready_secret_is_waited_for(declared):
    objects = [plain(one.inputs) for one in declared.values() if plain(one.inputs).get("kind") == "ExternalSecret"]
    assert len(objects) == 4, "three versions and the channel"
    assert {one["metadata"]["annotations"]["pulumi.com/waitFor"] for one in objects} == {"condition=Ready"}


def test_without_it_the_program_delivers(values):
    assert ExternalStore.of(stack(delivery="pulumi")) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "config"}, "moonstack:keys.source: 'config': external-secrets reads secretsManager"),
        ({"store": None}, "moonstack:keys.store: is required by external-secrets"),
        ({"agent": False}, "moonstack:keys.agent: False: external-secrets needs the key agent"),
    ],
)
def test_an_incomplete_delivery_is_refused(change, said):
    with pytest.raises(SettingsError) as caught:
        stack(**change)
    assert said in str(caught.value)
