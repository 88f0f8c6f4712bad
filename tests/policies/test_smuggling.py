"""What a hostile or a hurried author does with a key, and what merely looks like one: kinds, each by one or more cases."""

import base64
import bz2
import io
import json
import lzma
import secrets
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from capacity.keys.config import AgentConfig
from policies.catalogue import RULES
from policies.checks import key_text as check
from tests.policies.builders import container, deployment, fake_key, found, pod_spec, thing

(NO_KEY_TEXT,) = check.RULES
MARK = AgentConfig.model_fields["digest_annotation"].default
BY_ID = {rule.id: rule for rule in RULES}


def b64(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def archive(value: str) -> bytes:
    """A tar as `kubectl create configmap --from-file` takes it up."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        entry = tarfile.TarInfo("config.toml")
        entry.size = len(value)
        tar.addfile(entry, io.BytesIO(value.encode()))
    return out.getvalue()


def zipped(value: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("config.toml", value * 3)
    return out.getvalue()


def lines(text: str, width: int = 76) -> str:
    """As the command `base64` prints."""
    return "\n".join(text[at : at + width] for at in range(0, len(text), width)) + "\n"


def config(**data: Any) -> dict[str, Any]:
    return thing("ConfigMap", data=data)


def binary(data: bytes) -> dict[str, Any]:
    return thing("ConfigMap", binaryData={"file": b64(data)})


def pod(**fields: Any) -> dict[str, Any]:
    return deployment(pod_spec(container(**fields)))


SMUGGLED: dict[str, Callable[[str], dict[str, Any]]] = {
    "init container": lambda k: deployment(pod_spec(initContainers=[container(args=[k])])),
    "ephemeral container": lambda k: deployment(pod_spec(ephemeralContainers=[container(command=["x", k])])),
    "annotation for the downward API": lambda k: thing("Pod", metadata={"annotations": {"x": k}}, spec=pod_spec()),
    "arguments in two halves": lambda k: pod(args=["--key", k[:9], k[9:]]),
    "halves put together by the kubelet": lambda k: pod(
        env=[{"name": "A", "value": k[:9]}, {"name": "B", "value": k[9:]}], args=["$(A)$(B)"]
    ),
    "a variable of halves": lambda k: pod(
        env=[{"name": "A", "value": k[:9]}, {"name": "B", "value": f"$(A){k[9:]}"}],
    ),
    "status": lambda k: thing("ConfigMap", status={"x": k}),
    "a custom kind called Secret": lambda k: thing("Secret", api="example.com/v1", data={"x": b64(k)}),
    "template of a sealed secret": lambda k: thing(
        "SealedSecret", api="bitnami.com/v1alpha1", spec={"encryptedData": {}, "template": {"data": {"x": k}}}
    ),
    "zero-width space": lambda k: config(x=f"{k[:12]}\u200b{k[12:]}"),
    "soft hyphen": lambda k: config(x=f"{k[:12]}\u00ad{k[12:]}"),
    "another hyphen": lambda k: config(x=k.replace("-", "\u2011")),
    "full-width letters": lambda k: config(x="".join(chr(ord(c) + 0xFEE0) for c in k)),
    "after a written line break": lambda k: config(x=f"printf 'key:\\n{k}'"),
    "several lines of base64": lambda k: config(x=lines(b64("x" * 49 + " " + k))),
    "base64 glued to a word": lambda k: config(x=f"prefix-{b64(k)}"),
    "base64 in a path": lambda k: config(x=f"https://host/app/{b64(k)}/x"),
    "base64 of a binary file": lambda k: binary(b"\x00\xff\x07" + k.encode() + b"\x00\xfe"),
    "UTF-16, as PowerShell encodes": lambda k: config(x=b64(k.encode("utf-16-le"))),
    "gzip of a tar": lambda k: binary(archive(k)),
    "zip": lambda k: binary(zipped(k)),
    "zlib": lambda k: binary(zlib.compress(k.encode())),
    "bzip2": lambda k: binary(bz2.compress(k.encode())),
    "xz": lambda k: binary(lzma.compress(k.encode())),
    "hexadecimal": lambda k: config(x=k.encode().hex()),
    "JSON inside a command": lambda k: pod(args=['--config={"a": "' + "".join(f"\\u{ord(c):04x}" for c in k) + '"}']),
    "the user of a URL": lambda k: config(x=f"https://{k.removeprefix('sk-')}@git.example/x"),
    "a URL with a variable as user": lambda k: config(x="https://${USER}:" + k.removeprefix("sk-") + "@host"),
}
"""A key with a known form, somewhere it must be found."""


@pytest.mark.parametrize("hide", SMUGGLED.values(), ids=SMUGGLED)
def test_a_hidden_key_is_found_and_never_shown(hide):
    key = fake_key()
    violations = found(NO_KEY_TEXT, hide(key))
    assert violations
    assert all(key not in v.message and key[4:] not in v.path for v in violations)


NAMELESS: dict[str, Callable[[str], dict[str, Any]]] = {
    "flag and value apart": lambda k: pod(args=["serve", "--api-key", k]),
    "flag and value in a shell line": lambda k: pod(command=["sh", "-c", f"serve --api-key {k} --port 1"]),
    "flag and quoted value": lambda k: pod(command=["sh", "-c", f"serve --api-key '{k}'"]),
    "nginx snippet": lambda k: thing("Ingress", metadata={"annotations": {"s": f'proxy_set_header X-Api-Key "{k}";'}}),
    "netrc": lambda k: config(x=f"machine host login me password {k}\n"),
    "list of keys": lambda k: config(x=json.dumps({"api_keys": [k]})),
    "numbered name": lambda k: config(API_KEY_2=k),
    "name with a stage": lambda k: config(**{"apiKey.previous": k}),
    "a provider's key": lambda k: config(OPENAI_KEY=k),
    "master key": lambda k: pod(env=[{"name": "LITELLM_MASTER_KEY", "value": k}]),
    "header of a probe": lambda k: pod(
        livenessProbe={"httpGet": {"httpHeaders": [{"name": "X-Api-Key", "value": k}]}},
    ),
    "Envoy header": lambda k: config(x=yaml.safe_dump({"headers": [{"header": {"key": "x-api-key", "value": k}}]})),
    "Envoy inline secret": lambda k: config(
        x=yaml.safe_dump({"resources": [{"generic_secret": {"secret": {"inline_string": k}}}]})
    ),
    "Docker's registry login": lambda k: config(x=json.dumps({"auths": {"host": {"auth": b64(f"me:{k}")}}})),
    "basic authorization": lambda k: config(x=f"Authorization: Basic {b64(f'me:{k}')}"),
    "a value under a name": lambda k: config(x=json.dumps({"credentials": {"default": {"value": k}}})),
    "upper case": lambda k: config(PASSWORD=k.upper()),
}
"""Random text without a known form: what is beside it says that it is a key."""


@pytest.mark.parametrize("hide", NAMELESS.values(), ids=NAMELESS)
def test_random_text_beside_a_keys_name_is_found(hide):
    assert found(NO_KEY_TEXT, hide(secrets.token_hex(16) + "a1b2c3")), "nothing found"


DIGEST = "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"
UUID = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
INNOCENT: dict[str, dict[str, Any]] = {
    "Helm's checksum of a Secret": deployment(metadata={"annotations": {"checksum/secret": DIGEST}}),
    "hash of a token": config(token_sha256=DIGEST, secretHash=DIGEST, credentialsDigest=DIGEST),
    "image digest": pod(args=[f"registry.test/app@sha256:{DIGEST}"]),
    "hashed name of a generated Secret": thing("Pod", spec={"passwordSecret": "channel-keys-7b8c9d6f5g"}),
    "name of a secret in Secrets Manager": config(
        arn="arn:aws:secretsmanager:eu-west-1:123456789012:secret:moonstack/prod/fallback-a1B2c3"
    ),
    "bundle of authorities": thing(
        "APIService",
        spec={"caBundle": b64("-----BEGIN CERTIFICATE-----\n" + lines(b64(bytes(range(250))), 64))},
    ),
    "object's uid": thing("Service", metadata={"annotations": {"kubernetes.io/service-account.uid": UUID}}),
    "revision of a model": pod(args=["--revision", DIGEST[:40], "--hf-token-file", "/etc/keys/hf"]),
    "weights' digests": config(weights=json.dumps({"tokenizer.json": b64(bytes.fromhex(DIGEST)), "sha256": DIGEST})),
    "integrity": config(lock=json.dumps({"integrity": f"sha512-{b64(bytes.fromhex(DIGEST) * 2)}"})),
    "reference in a URL": config(url="redis://user:$(REDIS_PASSWORD)@redis:6379", other="https://${USER}:${PW}@host"),
    "reference as value": pod(env=[{"name": "HEADER", "value": "Bearer $(CHANNEL_TOKEN_2026_A)"}]),
    "a package called sk-": config(requirements="sk-learn-contrib-packages\nsk-image-extras-and-more"),
    "names of keys that aren't secret": config(
        cache_key=DIGEST, public_key=b64(bytes.fromhex(DIGEST)), partitionKey=UUID, idempotency_key=UUID
    ),
    "an example of a private key's form": config(doc="-----BEGIN " + "PRIVATE KEY-----\\n<private-key>\\n"),
    "what Envoy keeps to itself": config(dump=json.dumps({"private_key": {"inline_bytes": b64("[redacted]")}})),
    "what the key agent marks pods with": thing(
        "Pod", metadata={"annotations": {MARK: "cbd7bbadacc3f026"}}, spec=pod_spec()
    ),
    "basic words": config(readme="basic authenticationIsSupported2026 and Basic Understanding"),
    "path to a token": pod(args=["--token", "/var/run/secrets/kubernetes.io/serviceaccount/token"]),
    "token counts": config(x=json.dumps({"max_tokens": 4096, "tokens": [1, 2, 3], "bos_token": "<|begin_of_text|>"})),
    "prose": config(readme="The token 3.2-lts-release-2026 is a version; the secret gateway-client-keys-2 a name."),
}


@pytest.mark.parametrize("one", INNOCENT.values(), ids=INNOCENT)
def test_what_only_looks_like_a_key_is_left_alone(one):
    assert found(NO_KEY_TEXT, one) == []
