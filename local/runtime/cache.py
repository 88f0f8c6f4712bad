"""What is built once and kept in the cache folder: named by what went into it, and never seen half done."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local.alone import alone
from settings.paths import cache_dir

_DIGEST_LENGTH = 12


def runtime_dir() -> Path:
    """Where root file systems, Python environments and image layers are kept."""
    return cache_dir() / "runtime"


def key(*parts: str | bytes) -> str:
    """12 hex digits (48 bits) that change when any part does; where a part ends counts too."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()[:_DIGEST_LENGTH]


def ensure(target: Path, build: Callable[[Path], None]) -> Path:
    """Have `target`, a file or a folder, by `build(partial path)` unless it is there.

    It gets its name when it is whole, so an interrupted build is done again; a second process waits for the first.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with alone(target.with_name(f".{target.name}.lock")):
        if not target.exists():
            partial = target.with_name(f".{target.name}.partial")
            remove(partial)
            with _readable_by_all():
                build(partial)
            partial.rename(target)
    return target


def remove(path: Path) -> None:
    """Remove a file or a whole folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prune(newest: Path, pattern: str) -> None:
    """Remove what `newest` replaces: its neighbours of that pattern."""
    for other in newest.parent.glob(pattern):
        if other != newest:
            remove(other)


@contextmanager
def _readable_by_all() -> Iterator[None]:
    """Pods read what is built here as a user of their own, whatever the umask of who runs this."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)
