"""What a hostile or a hurried author does with a key, and what merely looks like one: kinds, each by one or more cases."""

import base64
import bz2
import gzip
import io
import json
import lzma
import secrets
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

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
    "hexadecimal, byte by byte": lambda k: config(x=k.encode().hex(" ")),
    "hexadecimal with colons": lambda k: config(x=k.encode().hex(":")),
    "hexadecimal of gzip": lambda k: config(x=gzip.compress(k.encode()).hex()),
    "base32": lambda k: config(x=base64.b32encode(k.encode()).decode()),
    "base64 of gzip, as text": lambda k: config(x=b64(gzip.compress(k.encode()))),
    "Helm's release in a ConfigMap": lambda k: config(
        release=b64(
            b64(gzip.compress(json.dumps({"manifest": f"---\nkind: ConfigMap\ndata:\n  a: {b64(k)}\n"}).encode()))
        )
    ),
    "URL escapes of every letter": lambda k: config(x="".join(f"%{ord(c):02X}" for c in k)),
    "URL escapes twice": lambda k: config(x=quote("".join(f"%{ord(c):02X}" for c in k))),
    "the name of a ConfigMap's file": lambda k: config(**{k: "x"}),
    "the name of a ConfigMap's file, in base64": lambda k: config(**{b64(k).rstrip("="): "x"}),
    "the name of a ConfigMap's file, in hexadecimal": lambda k: config(**{k.encode().hex(): "x"}),
    "a list of bytes": lambda k: thing("Foo", api="example.com/v1", spec={"bytes": list(k.encode())}),
    "a list of bytes in JSON": lambda k: config(x=json.dumps(list(k.encode()))),
    "escapes of a shell": lambda k: pod(command=["sh", "-c", "x $'" + "".join(f"\\x{ord(c):02x}" for c in k) + "'"]),
    "one escape in the middle": lambda k: pod(command=["sh", "-c", f"x $'sk\\x2d{k[3:]}'"]),
    "octal escapes": lambda k: pod(command=["sh", "-c", "printf '" + "".join(f"\\{ord(c):03o}" for c in k) + "'"]),
    "escapes of a program": lambda k: config(x="".join(f"\\u{ord(c):04x}" for c in k)),
    "entities of a page": lambda k: config(x="".join(f"&#{ord(c)};" for c in k)),
    "hexadecimal entities": lambda k: config(x="".join(f"&#x{ord(c):x};" for c in k)),
    "quoted-printable": lambda k: config(x="".join(f"={ord(c):02X}" for c in k)),
    "a line that goes on": lambda k: pod(command=["sh", "-c", f"serve --key {k[:12]}\\\n{k[12:]}"]),
    "quotes in the middle": lambda k: pod(command=["sh", "-c", f"serve --key '{k[:12]}''{k[12:]}'"]),
    "empty quotes in the middle": lambda k: pod(command=["sh", "-c", f'serve --key {k[:12]}""{k[12:]}']),
    "a sum of texts": lambda k: config(x=f'key = "{k[:12]}" + "{k[12:]}"'),
    "a YAML anchor": lambda k: config(x=f'a: &k "{k[:12]}\\\n  {k[12:]}"\nb: *k\n'),
    "YAML with a tag of its own": lambda k: config(x=f'a: !ours\n  b: "{k[:12]}\\\n    {k[12:]}"\n'),
    "binary YAML": lambda k: config(x=f"a: !!binary {b64(k)}\nb: 1\n"),
    "JSON in YAML in JSON": lambda k: config(x=json.dumps({"a": yaml.safe_dump({"b": json.dumps([k]), "c": 1})})),
    "Envoy inline bytes": lambda k: config(x=yaml.safe_dump({"secret": {"inline_bytes": b64(k)}})),
    "lifecycle hook": lambda k: pod(lifecycle={"postStart": {"exec": {"command": ["register", k]}}}),
    "header of a lifecycle hook": lambda k: pod(
        lifecycle={"preStop": {"httpGet": {"httpHeaders": [{"name": "x", "value": k}]}}}
    ),
    "CronJob": lambda k: thing(
        "CronJob",
        api="batch/v1",
        spec={"jobTemplate": {"spec": {"template": {"spec": pod_spec(container(args=[k]))}}}},
    ),
    "PodTemplate": lambda k: thing("PodTemplate", template={"spec": pod_spec(container(args=[k]))}),
    "finalizer": lambda k: thing("Pod", metadata={"finalizers": [f"example.com/{k}"]}, spec=pod_spec()),
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
    forms = (key, key[4:], b64(key).rstrip("="), key.encode().hex())
    assert not any(form in text for form in forms for v in violations for text in (v.message, v.path, v.object))


def noted(**fields: Any) -> dict[str, Any]:
    """A Secret that was applied by kubectl: all of it stands in an annotation."""
    applied = json.dumps({"kind": "Secret", **fields})
    return thing("Secret", metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}})


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
    "beside a name and a key": lambda k: config(x=json.dumps([{"name": "a", "key": "authorization", "value": k}])),
    "beside a header": lambda k: config(x=json.dumps([{"header": "authorization", "value": k}])),
    "a query": lambda k: pod(args=[f"--url=https://host/?api_key={k}&x=1"]),
    "an escaped query": lambda k: pod(args=[quote(f"https://host/?api_key={k}&x=1", safe="")]),
    "XML": lambda k: config(x=f"<apiKey>{k}</apiKey>"),
    "an attribute of XML": lambda k: config(x=f'<add key="ApiKey" value="{k}"/>'),
    "a program's pair": lambda k: config(x=f"('api_key', '{k}')"),
    "what kubectl noted of a Secret's data": lambda k: noted(data={"file": b64(k)}),
    "what kubectl noted of a Secret's texts": lambda k: noted(stringData={"file": k}),
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
    "kubectl's note of another kind": thing(
        "ConfigMap",
        metadata={
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
                    {"kind": "ConfigMap", "data": {"file": DIGEST}}
                )
            }
        },
    ),
    "kubectl's note of an empty Secret": noted(type="Opaque"),
    "fingerprint with colons": config(x=bytes.fromhex(DIGEST).hex(":")),
    "a list of ports": config(x=json.dumps(list(range(20, 60)))),
    "names side by side": config(x='["--secret", "gateway-client-keys-2", "--token", "/etc/keys/hf-token-2026"]'),
    "a file's long name": config(**{"gateway-channel-key-of-the-fallback.yaml": "x"}),
    "a password's element without one": config(x="<password></password><secretName>gateway-client-keys-2</secretName>"),
    "a shell's pieces": pod(command=["sh", "-c", 'set -e; \\\n  exec vllm serve \\\n  --model \'a\'"b" + "c"']),
    "prose": config(readme="The token 3.2-lts-release-2026 is a version; the secret gateway-client-keys-2 a name."),
}


@pytest.mark.parametrize("one", INNOCENT.values(), ids=INNOCENT)
def test_what_only_looks_like_a_key_is_left_alone(one):
    assert found(NO_KEY_TEXT, one) == []
