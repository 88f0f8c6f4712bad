"""What the Pulumi backend keeps of a stack: state, backups and history, read as files and without the passphrase."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from policies.audit.run import Place, Unreadable
from policies.audit.search import Canaries, search
from policies.judge import judge
from policies.rule import Facts
from policies.state import STATE_RULE, hidden, is_state, state_objects

_FOLDERS: Final = {"state": "stacks", "backups": "backups", "history": "history"}


def places(backend: str, stack: str) -> list[Place]:
    """State, backups and history of one stack in a backend such as file:///folder or s3://bucket/prefix?region=…"""

    def place(name: str, folder: str) -> Place:
        return Place(f"Pulumi {name}", lambda: _documents(backend, folder, stack), _find)

    return [place(name, folder) for name, folder in _FOLDERS.items()]


def _find(content: Any, canaries: Canaries) -> Iterator[tuple[str, str]]:
    """As everywhere, and the data of a Secret that isn't encrypted, whatever it looks like."""
    yield from search(content, canaries)
    if isinstance(content, dict) and is_state(content):
        for violation in judge([STATE_RULE], list(state_objects(content)), Facts("prod")):
            yield f"{violation.object}: {violation.path}", "a Secret's data in clear text"


def _documents(backend: str, folder: str, stack: str) -> Iterator[tuple[str, Any]]:
    found = False
    for name, data in _files(backend, f".pulumi/{folder}/"):
        if stack in Path(name).name.split(".") or f"/{stack}/" in name or Path(name).name.startswith(f"{stack}-"):
            found = True
            yield name, _readable(name, data)
    if not found and folder == "stacks":
        raise Unreadable(f"no state of stack {stack} in {urlsplit(backend)._replace(query='').geturl()}")


def _readable(name: str, data: bytes) -> Any:
    """A document with what is encrypted hidden; the salt and the encrypted data key of the secrets provider are no keys."""
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode(errors="replace")
    try:
        return _without_providers(hidden(json.loads(text)))
    except ValueError:
        return text


def _without_providers(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_providers(item)
            for key, item in value.items()
            if key not in ("secrets_providers", "encryptionsalt")
        }
    return [_without_providers(item) for item in value] if isinstance(value, list) else value


def _files(backend: str, folder: str) -> Iterator[tuple[str, bytes]]:
    url = urlsplit(backend)
    if url.scheme == "file":
        root = Path(unquote(url.netloc + url.path)).expanduser()
        yield from (
            (str(path.relative_to(root)), path.read_bytes())
            for path in sorted((root / folder).rglob("*"))
            if path.is_file()
        )
    elif url.scheme == "s3":
        yield from _objects(url.netloc, url.path.strip("/"), parse_qs(url.query), folder)
    else:
        raise Unreadable(f"backends of kind {url.scheme or 'none'} can't be read; export the state and scan the file")


def _objects(bucket: str, prefix: str, options: dict[str, list[str]], folder: str) -> Iterator[tuple[str, bytes]]:
    # half a second to import, in every run of the program, and only these backends need it
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    def option(name: str) -> str | None:
        return options.get(name, [None])[0]

    start = f"{prefix}/{folder}" if prefix else folder
    try:
        client: Any = boto3.client(
            "s3",
            region_name=option("region"),
            endpoint_url=option("endpoint"),
            config=Config(
                connect_timeout=5, read_timeout=20, s3={"addressing_style": "path" if option("endpoint") else "auto"}
            ),
        )
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=start):
            for entry in page.get("Contents", []):
                yield entry["Key"], client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
    except (BotoCoreError, ClientError) as error:
        raise Unreadable(f"bucket {bucket} could not be read ({type(error).__name__})") from None
