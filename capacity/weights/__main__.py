"""The sidecar beside an engine: `python -m capacity.weights hold …` fetches, verifies, says ready, and holds until it is ended."""

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from capacity.weights.cache import Cache
from capacity.weights.ending import Ending
from capacity.weights.errors import FetchError
from capacity.weights.fetch import ensure
from capacity.weights.source import Source

app = typer.Typer(
    help="Weights on this node.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def main() -> None:
    """Weights on this node."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)


@app.command()
def hold(
    source: Annotated[
        str, typer.Option(help="s3://bucket/prefix, hub://organisation/name or modelscope://organisation/name.")
    ],
    revision: Annotated[str, typer.Option(help="The pinned revision.")],
    folder: Annotated[Path, typer.Option(help="The cache.")],
    entry: Annotated[str, typer.Option(help="Name of this model's folder in the cache.")],
    size: Annotated[int, typer.Option(help="Expected bytes.")],
    ready_file: Annotated[Path, typer.Option(help="Made once the weights are complete.")],
    checksums: Annotated[str | None, typer.Option(help="SHA-256 of SHA256SUMS, for s3.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Another S3 endpoint, or a mirror of the hub.")] = None,
    limit: Annotated[int | None, typer.Option(help="Most bytes that the cache may hold.")] = None,
    offline: Annotated[bool, typer.Option(help="Never fetch.")] = False,
) -> None:
    """Have the weights on this node, and keep them from eviction until this process ends."""
    ready_file.unlink(missing_ok=True)
    ending = Ending()
    try:
        cache = Cache(folder, limit)
        with cache.using(entry):
            ensure(lambda: open_source(source, revision, checksums, endpoint), cache, entry, size, offline)
            cache.touch(entry)
            ending.ready = True
            ready_file.touch()
            ending.wait()
    except FetchError as error:
        logging.getLogger("weights").error("%s", error)
        raise typer.Exit(1) from None


def open_source(location: str, revision: str, checksums: str | None, endpoint: str | None) -> Source:
    """The source that a location names. Raises FetchError."""
    scheme, _, name = location.partition("://")
    token = os.environ.get("HF_TOKEN") or os.environ.get("MODELSCOPE_API_TOKEN")
    if scheme == "s3":
        from capacity.weights.s3 import S3Source  # boto3 takes a second to import

        if checksums is None:
            raise FetchError("s3 needs --checksums, the SHA-256 of the prefix's SHA256SUMS")
        return S3Source(location, revision, checksums, endpoint)
    from capacity.weights.hub import HubSource, ModelScopeSource

    if scheme == "modelscope":
        return ModelScopeSource(name, revision, endpoint, token)
    if scheme == "hub":
        return HubSource(name, revision, endpoint, token)
    raise FetchError(f"{location} is no source; use s3://, hub:// or modelscope://")


if __name__ == "__main__":
    app()
