"""Keys in clear text are found wherever they may stand, and nowhere else."""

import base64
import gzip
import json
import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from policies.checks.key_text import RULES
from policies.objects import Object
from policies.unknown import UNKNOWN
from rules import key_text
from tests.policies.builders import container, deployment, fake_key, found, pod_spec, thing

(NO_KEY_TEXT,) = RULES


def b64(text: str | bytes) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def jwt() -> str:
    def part(value: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': 'somebody'})}.{secrets.token_urlsafe(32)}"


FORMATS = {
    "openai": fake_key,
    "anthropic": lambda: "sk-ant-api03-" + secrets.token_urlsafe(40),
    "aws": lambda: "AKIA" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16)),
    "github": lambda: "ghp_" + secrets.token_hex(18),
    "hugging face": lambda: "hf_" + secrets.token_hex(17),
    "nvidia": lambda: "nvapi-" + secrets.token_urlsafe(48),
    "slack": lambda: "xoxb-" + secrets.token_hex(12),
    "pulumi": lambda: "pul-" + secrets.token_hex(20),
    "jwt": jwt,
    "bearer": lambda: "Authorization: Bearer 7" + secrets.token_urlsafe(30),
    "private key": lambda: "-----BEGIN " + "RSA PRIVATE KEY-----\nMII",
    "url": lambda: f"https://user:{secrets.token_hex(8)}@proxy.example:8080/",
}


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
def test_every_known_format_is_found_in_a_config_map(make):
    value = f"before {make()} after"
    (violation,) = found(NO_KEY_TEXT, thing("ConfigMap", data={"file": value}))
    assert violation.path == "data.file"
    assert violation.severity == "critical"


UPPER, HEX = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdef"
ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ISSUED: dict[str, tuple[str, str, int, str]] = {
    "short provider": ("sk-", HEX, 16, ""),
    "openai": ("sk-", HEX, 48, ""),
    "anthropic": ("sk-ant-api03-", ALPHANUMERIC + "-_", 54, ""),
    "aws": ("AKIA", UPPER, 16, ""),
    "github": ("ghp_", ALPHANUMERIC, 36, ""),
    "github fine-grained": ("github_pat_", ALPHANUMERIC, 22, ""),
    "gitlab": ("glpat-", ALPHANUMERIC + "-_", 20, ""),
    "hugging face": ("hf_", ALPHANUMERIC, 34, ""),
    "nvidia": ("nvapi-", ALPHANUMERIC + "-_", 64, ""),
    "groq": ("gsk_", ALPHANUMERIC, 52, ""),
    "google": ("AIza", ALPHANUMERIC + "-_", 35, ""),
    "slack": ("xoxb-", HEX, 24, ""),
    "npm": ("npm_", ALPHANUMERIC, 36, ""),
    "pypi": ("pypi-", ALPHANUMERIC + "-_", 60, ""),
    "pulumi": ("pul-", HEX, 40, ""),
    "vault": ("hvs.", ALPHANUMERIC + "-_", 24, ""),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.", ALPHANUMERIC + "-_", 43, ""),
    "bearer": ("Bearer 7", ALPHANUMERIC + "-_", 24, ""),
    "url": ("https://user:", HEX, 16, "@proxy"),
}
"""Prefix, alphabet, length and suffix of what providers issue; what random text holds by chance shall not excuse it."""
MARKS = ("todo", "TODO", "xxxx", "XXXX", "1234", "dummy", "DUMMY", "your", "abcdef")


@pytest.mark.parametrize("form", ISSUED.values(), ids=ISSUED)
def test_a_random_key_is_found_also_where_a_stand_ins_mark_stands_in_it_by_chance(form):
    prefix, alphabet, length, suffix = form
    chance = random.Random(1)
    fitting = [mark for mark in MARKS if set(mark) <= set(alphabet) and len(mark) * 3 < length]
    assert fitting
    others = [
        letter for letter in alphabet if letter not in "xX156-_"
    ]  # none that would make the mark longer, or a word
    for _ in range(300):
        body = "".join(chance.choices(others, k=length))
        for mark in fitting:
            at = chance.randrange(length - len(mark) + 1)
            key = prefix + body[:at] + mark + body[at + len(mark) :] + suffix
            assert any(key_text.find(key)), f"{mark} at {at} excuses a key of {length} characters"


def seeded(form: tuple[str, str, int, str], count: int) -> list[str]:
    prefix, alphabet, length, suffix = form
    chance = random.Random(2)
    return [prefix + "".join(chance.choices(alphabet, k=length)) + suffix for _ in range(count)]


@pytest.mark.parametrize(("name", "count"), [(name, 50_000 if name == "aws" else 3_000) for name in ISSUED])
def test_every_one_of_many_random_keys_is_found(name: str, count: int):
    assert [key for key in seeded(ISSUED[name], count) if not any(key_text.find(key))] == []


STAND_INS: dict[str, Callable[[], str]] = {
    "x": lambda: "sk-" + "x" * 24,
    "capital x": lambda: "AKIA" + "X" * 16,
    "counting": lambda: "sk-" + "1234567890" * 2,
    "counting hex": lambda: "sk-" + "1234567890abcdef" * 2,
    "documentation": lambda: "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "words": lambda: "sk-" + "your-key-goes-here",
    "a word of its own": lambda: "sk-" + "dummy-key-for-tests-01",
    "elided": lambda: "Bearer " + "7f3k9d8s7a6p5o4i...",
    "a whole word": lambda: "sk-" + "placeholder-of-the-channel-000001",
}


@pytest.mark.parametrize("make", STAND_INS.values(), ids=STAND_INS)
def test_stand_ins_are_no_keys(make):
    assert list(key_text.find(f"key: {make()}")) == []


@pytest.mark.parametrize("length", [32, 40, 64])
def test_random_hex_of_usual_lengths_looks_random(length: int):
    assert [value for value in seeded(("", HEX, length, ""), 5_000) if not key_text.looks_random(value)] == []


PLACES = {
    "binary data": lambda key: thing("ConfigMap", binaryData={"file": b64(key)}),
    "env value": lambda key: deployment(pod_spec(container(env=[{"name": "MODE", "value": key}]))),
    "argument": lambda key: deployment(pod_spec(container(args=["--api-key", key]))),
    "command": lambda key: deployment(pod_spec(container(command=["sh", "-c", f"curl -H 'x: {key}' host"]))),
    "probe header": lambda key: deployment(
        pod_spec(
            container(
                readinessProbe={"httpGet": {"httpHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}}
            )
        )
    ),
    "annotation": lambda key: thing("Service", metadata={"annotations": {"note": key}}),
    "label": lambda key: thing("Service", metadata={"labels": {"note": key}}),
    "name of a field": lambda key: thing("ConfigMap", data={key: "x"}),
    "template in a custom resource": lambda key: thing(
        "ModelServing",
        api="workload.serving.volcano.sh/v1alpha1",
        spec={"template": {"roles": [{"entryTemplate": {"spec": pod_spec(container(args=[key]))}}]}},
    ),
    "ingress snippet": lambda key: thing(
        "Ingress",
        metadata={"annotations": {"nginx.ingress.kubernetes.io/configuration-snippet": f'proxy_set_header X "{key}";'}},
    ),
    "a secret's own annotation": lambda key: thing(
        "Secret",
        metadata={
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"k": b64(key)}})}
        },
        data={"k": b64(key)},
    ),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_key_is_found_in_every_place_and_the_message_never_holds_it(place):
    key = fake_key()
    violations = found(NO_KEY_TEXT, place(key))
    assert violations
    assert all(key not in violation.message for violation in violations)
    assert all(violation.enforcement == "mandatory" for violation in violations)


WRAPPINGS = {
    "base64": b64,
    "base64 twice": lambda key: b64(b64(key)),
    "base64 of gzip": lambda key: b64(gzip.compress(f"key: {key}".encode())),
    "base64 in a sentence": lambda key: f"token is {b64(key)}, keep it",
    "JSON": lambda key: json.dumps({"a": [{"b": key}]}),
    "JSON with escapes": lambda key: '{"a": "' + "".join(f"\\u{ord(c):04x}" for c in key) + '"}',
    "base64 in JSON": lambda key: json.dumps({"a": b64(key)}),
    "JSON in base64 in YAML": lambda key: yaml.safe_dump({"outer": {"inner": b64(json.dumps({"a": key}))}, "x": 1}),
    "YAML with escapes": lambda key: 'a: "' + "".join(f"\\x{ord(c):02x}" for c in key) + '"\nb: 1\n',
    "TOML with escapes": lambda key: 'x = 1\na = "' + "".join(f"\\u{ord(c):04x}" for c in key) + '"\n',
    "URL escapes": lambda key: "".join(f"%{ord(c):02X}" for c in key),
}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
def test_wrappings_are_seen_through(wrap):
    key = fake_key()
    assert found(NO_KEY_TEXT, thing("ConfigMap", data={"file": wrap(key)})), wrap(key)[:40]


NAMED = {
    "TOML": lambda word: {"config.toml": f'[channel]\napi_key = "{word}"\n'},
    "JSON": lambda word: {"settings.json": json.dumps({"credentials": {"apiKey": word}})},
    "a field": lambda word: {"DB_PASSWORD": word},
    "base64 of JSON": lambda word: {"file": b64(json.dumps({"authToken": word}))},
}


@pytest.mark.parametrize("data", NAMED.values(), ids=NAMED)
def test_random_text_in_a_field_named_like_a_key_is_found(data):
    assert found(NO_KEY_TEXT, thing("ConfigMap", data=data(secrets.token_hex(16))))
    assert not found(NO_KEY_TEXT, thing("ConfigMap", data=data("gateway-client-keys")))


CLEAN: dict[str, dict[str, Any]] = {
    "a secret's data": thing("Secret", data={"channel": b64(fake_key())}),
    "names of variables and secrets": thing(
        "ConfigMap",
        data={"config.toml": '[channel]\napi_key_env = "TAOTOKEN_API_KEY"\nsecretName = "gateway-client-keys"\n'},
    ),
    "digests": thing("Pod", metadata={"annotations": {"moonstack.dev/config-digest": secrets.token_hex(8)}}),
    "image digests": deployment(),
    "placeholders": thing(
        "ConfigMap", data={"readme": "export OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxx and Bearer <your-key>"}
    ),
    "paths and references": thing("ConfigMap", data={"token": "/var/run/secrets/kubernetes.io/serviceaccount/token"}),
    "a CA certificate": thing(
        "ConfigMap", data={"ca.crt": "-----BEGIN CERTIFICATE-----\n" + b64(secrets.token_bytes(300))}
    ),
    "a key reference": deployment(
        pod_spec(container(env=[{"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]))
    ),
    "a max-tokens setting": thing("ConfigMap", data={"s.json": json.dumps({"max_tokens": 4096, "token_usage": True})}),
    "a fingerprint": thing(
        "Secret", metadata={"annotations": {"moonstack.dev/key-fingerprint": secrets.token_hex(16)}}
    ),
}


@pytest.mark.parametrize("one", CLEAN.values(), ids=CLEAN)
def test_clean_objects_are_left_alone(one):
    assert found(NO_KEY_TEXT, one) == []


def test_an_unknown_value_is_noted_and_does_not_hide_a_key_beside_it():
    key = fake_key()
    violations = found(NO_KEY_TEXT, thing("ConfigMap", data={"first": UNKNOWN, "second": key}))
    assert [(v.enforcement, v.path) for v in violations] == [("mandatory", "data.second"), ("advisory", "data.first")]


def test_a_provider_may_hold_its_own_credentials_but_not_in_another_field():
    body = {"kubeconfig": fake_key(), "namespace": fake_key()}
    violations = found(NO_KEY_TEXT, Object(body, type="pulumi:providers:kubernetes", urn="urn::cluster"))
    assert [violation.path for violation in violations] == ["namespace"]


def test_redaction_leaves_the_rest_of_the_text():
    key = fake_key()
    assert key_text.redact(f"GET / {key} 200") == "GET / [redacted] 200"
    assert key_text.redact("commit " + "3f" * 20) == "commit " + "3f" * 20
