"""Fetch every file of a revision, from where an earlier attempt stopped, and let nothing unverified through."""

import errno
import hashlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from capacity.weights.cache import Cache
from capacity.weights.errors import FetchError, TransferError
from capacity.weights.source import CHUNK, RemoteFile, Source

PARALLEL = 4
ATTEMPTS = 6
_VERIFIED = ".verified"
log = logging.getLogger("weights")
Result = TypeVar("Result")


def ensure(source: Callable[[], Source], cache: Cache, name: str, size: int, offline: bool) -> None:
    """Have the entry complete. Raises FetchError; what was fetched by then is kept for the next attempt.

    `size` is what the settings expect, used to make room before the source is asked.
    """
    with cache.fetching(name):
        if cache.is_complete(name):
            log.info("%s is in the cache", name)
            return
        if offline:
            raise FetchError(f"{name} isn't in {cache.folder}, and weights.offline forbids to fetch it: copy it there")
        for victim in cache.make_room(name, size):
            log.info("evicted %s", victim)
        remote = source()
        files = _patiently(remote.files)
        if not files:
            raise FetchError(f"{name}: the source lists no files")
        cache.make_room(name, sum(file.size for file in files))
        _fetch_all(remote, files, cache.partial(name))
        cache.publish(name)


def _fetch_all(source: Source, files: list[RemoteFile], folder: Path) -> None:
    verified = set((folder / _VERIFIED).read_text().splitlines()) if (folder / _VERIFIED).exists() else set()
    wanted = [file for file in files if file.path not in verified]
    with ThreadPoolExecutor(PARALLEL) as pool:
        jobs = {pool.submit(_fetch, source, file, folder / file.path): file for file in wanted}
        try:
            for job, file in jobs.items():
                job.result()
                with (folder / _VERIFIED).open("a") as record:
                    record.write(f"{file.path}\n")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch(source: Source, file: RemoteFile, path: Path) -> None:
    """One file: a wrong checksum is fetched once more from the start, and is an error the second time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for again in (True, False):
        _patiently(lambda: _append(source, file, path))
        if _matches(file, path):
            log.info("%s verified, %d bytes", file.path, file.size)
            return
        path.unlink()
        if not again:
            raise FetchError(f"{file.path} is corrupt at its source: twice its checksum was not the one stated")
        log.warning("%s has a wrong checksum; fetching it again", file.path)


def _append(source: Source, file: RemoteFile, path: Path) -> None:
    offset = path.stat().st_size if path.exists() else 0
    if offset > file.size:
        path.unlink()
        offset = 0
    if offset == file.size and path.exists():
        return
    try:
        with path.open("ab") as target:
            for chunk in source.read(file, offset) if file.size else ():
                target.write(chunk)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FetchError(f"the disk of {path.parent} is full: enlarge it, or lower other models' limits") from None
        raise
    if path.stat().st_size < file.size:
        raise TransferError(f"{file.path} ended early, at {path.stat().st_size} of {file.size} bytes")


def _matches(file: RemoteFile, path: Path) -> bool:
    digest = hashlib.sha256() if file.sha256 else hashlib.sha1(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as content:
        while chunk := content.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == (file.sha256 or file.git_sha1)


def _patiently(attempt: Callable[[], Result]) -> Result:
    """Try again after broken transfers, waiting 1, 2, 4 … seconds; each attempt goes on where the last one stopped."""
    for waited in range(ATTEMPTS):
        try:
            return attempt()
        except TransferError as error:
            if waited == ATTEMPTS - 1:
                raise FetchError(f"{error}; given up after {ATTEMPTS} attempts") from None
            log.warning("%s; trying again", error)
            time.sleep(2**waited)
    raise AssertionError
