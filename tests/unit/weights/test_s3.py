"""Weights from S3, held against moto's S3."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from moto.server import ThreadedMotoServer

from capacity.weights import fetch
from capacity.weights.cache import Cache
from capacity.weights.errors import FetchError
from capacity.weights.s3 import SUMS, S3Source

REVISION = "0123456789abcdef"
FILES = {"config.json": b"{}", "sub/model.safetensors": b"weights" * 100_000}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(fetch, "time", SimpleNamespace(sleep=lambda _: None))


@pytest.fixture
def checksums(endpoint: str) -> str:
    """Uploads the revision anew and returns the digest of its SHA256SUMS."""
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="weights")
    sums = "".join(f"{hashlib.sha256(body).hexdigest()}  {name}\n" for name, body in FILES.items()).encode()
    for name, body in {**FILES, SUMS: sums}.items():
        client.put_object(Bucket="weights", Key=f"model/{REVISION}/{name}", Body=body)
    return hashlib.sha256(sums).hexdigest()


def ensure(endpoint: str, checksums: str, folder: Path, revision: str = REVISION, bucket: str = "weights") -> Path:
    cache = Cache(folder, None)
    source = S3Source(f"s3://{bucket}/model", revision, checksums, endpoint)
    fetch.ensure(lambda: source, cache, "model", 1000, False)
    return cache.entry("model")


def test_a_revision_is_fetched_and_verified(endpoint: str, checksums: str, tmp_path: Path):
    entry = ensure(endpoint, checksums, tmp_path)
    assert {name: (entry / name).read_bytes() for name in FILES} == FILES


def test_half_a_file_is_completed(endpoint: str, checksums: str, tmp_path: Path):
    partial = Cache(tmp_path, None).partial("model") / "sub"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(FILES["sub/model.safetensors"][:1000])
    assert (ensure(endpoint, checksums, tmp_path) / "sub/model.safetensors").read_bytes() == FILES[
        "sub/model.safetensors"
    ]


def test_a_changed_bucket_is_noticed_by_the_pinned_digest(endpoint: str, checksums: str, tmp_path: Path):
    client = boto3.client("s3", endpoint_url=endpoint)
    client.put_object(Bucket="weights", Key=f"model/{REVISION}/{SUMS}", Body=b"0" * 64 + b"  config.json\n")
    with pytest.raises(FetchError, match=r"weights\.checksums pins"):
        ensure(endpoint, checksums, tmp_path)


def test_a_changed_file_is_corrupt(endpoint: str, checksums: str, tmp_path: Path):
    client = boto3.client("s3", endpoint_url=endpoint)
    client.put_object(Bucket="weights", Key=f"model/{REVISION}/config.json", Body=b"[]")
    with pytest.raises(FetchError, match=r"config\.json is corrupt"):
        ensure(endpoint, checksums, tmp_path)
    assert not (tmp_path / "model").exists()


def test_a_lost_file_is_named(endpoint: str, checksums: str, tmp_path: Path):
    boto3.client("s3", endpoint_url=endpoint).delete_object(Bucket="weights", Key=f"model/{REVISION}/config.json")
    with pytest.raises(FetchError, match=r"config\.json is listed in SHA256SUMS but isn't there"):
        ensure(endpoint, checksums, tmp_path)


def test_a_missing_revision_or_bucket_is_named(endpoint: str, checksums: str, tmp_path: Path):
    with pytest.raises(FetchError, match="is the revision right"):
        ensure(endpoint, checksums, tmp_path, revision="f" * 12)
    with pytest.raises(FetchError, match="is the revision right"):
        ensure(endpoint, checksums, tmp_path, bucket="nowhere")
