"""Weights in an S3 bucket: `<prefix>/<revision>/…` with a file SHA256SUMS, whose own digest is pinned in the stack's settings."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from capacity.weights.errors import FetchError, TransferError
from capacity.weights.source import CHUNK, RemoteFile

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


class S3Source:
    """One revision below an `s3://bucket/prefix`; credentials come from the environment, as boto3 reads them."""

    def __init__(self, location: str, revision: str, checksums: str, endpoint: str | None = None) -> None:
        parts = urlsplit(location)
        self._bucket = parts.netloc
        self._prefix = "/".join(part for part in (parts.path.strip("/"), revision) if part)
        self._checksums = checksums
        self._client: Any = boto3.client("s3", endpoint_url=endpoint, config=Config(retries={"mode": "standard"}))

    def files(self) -> list[RemoteFile]:
        """The files that SHA256SUMS lists; whatever else is below the prefix stays out."""
        listed = self._sums()
        sizes = self._sizes()
        if absent := sorted(set(listed) - set(sizes)):
            raise FetchError(f"{self._url(absent[0])} is listed in {SUMS} but isn't there: upload the revision again")
        return [RemoteFile(path, sizes[path], sha256=digest) for path, digest in sorted(listed.items())]

    def read(self, file: RemoteFile, offset: int) -> Iterator[bytes]:
        """The object's bytes from an offset."""
        try:
            body = self._client.get_object(
                Bucket=self._bucket, Key=f"{self._prefix}/{file.path}", Range=f"bytes={offset}-"
            )["Body"]
            yield from body.iter_chunks(CHUNK)
        except (BotoCoreError, ClientError, OSError) as error:
            raise TransferError(f"{self._url(file.path)}: {error}") from None

    def _sums(self) -> dict[str, str]:
        try:
            text = self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}/{SUMS}")["Body"].read()
        except NoCredentialsError:
            raise FetchError("no credentials for S3: give weights.credentialsSecret with AWS_ACCESS_KEY_ID") from None
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ("NoSuchKey", "NoSuchBucket", "404"):
                raise FetchError(f"{self._url(SUMS)} doesn't exist: is the revision right, and uploaded?") from None
            if code in ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
                raise FetchError(f"{self._url(SUMS)}: {code}: check the Secret of weights.credentialsSecret") from None
            raise TransferError(f"{self._url(SUMS)}: {error}") from None
        except (BotoCoreError, OSError) as error:
            raise TransferError(f"{self._url(SUMS)}: {error}") from None
        found = hashlib.sha256(text).hexdigest()
        if found != self._checksums:
            raise FetchError(
                f"{self._url(SUMS)} has SHA-256 {found}, and weights.checksums pins {self._checksums}: "
                "another revision, or somebody changed the bucket"
            )
        lines = (_LINE.fullmatch(line) for line in text.decode().splitlines() if line.strip())
        return {match[2].removeprefix("./"): match[1] for match in lines if match}

    def _sizes(self) -> dict[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{self._prefix}/")
        try:
            found = [item for page in pages for item in page.get("Contents", ())]
        except (BotoCoreError, ClientError) as error:
            raise TransferError(f"s3://{self._bucket}/{self._prefix}: {error}") from None
        return {item["Key"].removeprefix(f"{self._prefix}/"): item["Size"] for item in found}

    def _url(self, path: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}/{path}"
