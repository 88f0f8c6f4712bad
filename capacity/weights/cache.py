"""The folder of a node that keeps weights: entries, locks, room and eviction.

Layout: `<entry>/` is complete, `.partial/<entry>/` is being fetched, `.locks/<entry>.use` is held shared by each pod that serves it and
`.locks/<entry>.fetch` exclusively by the one that fetches. Locks are flock(2): they end with the process, however it ends.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capacity.weights.errors import FetchError

COMPLETE = ".complete"
_GIB = 2**30


class Cache:
    """Weights below one folder; `limit` bounds the sum of all entries in bytes."""

    def __init__(self, folder: Path, limit: int | None) -> None:
        self.folder = folder
        self._limit = limit
        self._locks = folder / ".locks"
        self._partial = folder / ".partial"
        try:
            for path in (self._locks, self._partial):
                path.mkdir(exist_ok=True)
        except OSError as error:
            raise FetchError(
                f"{folder} is not writable for user {os.getuid()} ({error.strerror}): "
                f"prepare it on the node with `install -d -o {os.getuid()} FOLDER`"
            ) from None

    def entry(self, name: str) -> Path:
        """Where complete weights of that name are."""
        return self.folder / name

    def partial(self, name: str) -> Path:
        """Where they are fetched; what an interrupted fetch left is kept."""
        path = self._partial / name
        path.mkdir(exist_ok=True)
        return path

    def is_complete(self, name: str) -> bool:
        """Whether every file of the entry was fetched and verified."""
        return (self.entry(name) / COMPLETE).exists()

    def publish(self, name: str) -> None:
        """Make a fetched entry visible at once and as a whole."""
        (self.partial(name) / COMPLETE).touch()
        os.sync()
        shutil.rmtree(self.entry(name), ignore_errors=True)
        self.partial(name).rename(self.entry(name))

    def touch(self, name: str) -> None:
        """Note that the entry is used now."""
        os.utime(self.entry(name) / COMPLETE, (time.time(), time.time()))

    @contextmanager
    def using(self, name: str) -> Iterator[None]:
        """While this lasts nobody evicts the entry."""
        with self._lock(f"{name}.use", fcntl.LOCK_SH):
            yield

    @contextmanager
    def fetching(self, name: str) -> Iterator[None]:
        """Waits until nobody else on the node fetches the same entry."""
        with self._lock(f"{name}.fetch", fcntl.LOCK_EX):
            yield

    def make_room(self, name: str, total: int) -> list[str]:
        """Evict what is used least recently until an entry of `total` bytes fits; returns what went.

        Raises FetchError when the limit or the disk can't hold it beside what pods use now.
        """
        missing = max(0, total - size_of(self.partial(name)))
        if not self._fits(name, total, missing):
            self._drop_abandoned(but=name)
        evicted = []
        for victim in self._by_last_use(but=name):
            if self._fits(name, total, missing):
                break
            if self._evict(victim):
                evicted.append(victim)
        if not self._fits(name, total, missing):
            free = shutil.disk_usage(self.folder).free
            limit = f"limit {self._limit / _GIB:.1f}Gi, " if self._limit is not None else ""
            raise FetchError(
                f"{name} needs {missing / _GIB:.1f}Gi more in {self.folder}: {limit}{self._used(name) / _GIB:.1f}Gi held by other "
                f"models, {free / _GIB:.1f}Gi free on disk; raise weights.cache.limit, enlarge the disk, or use another node"
            )
        return evicted

    def _fits(self, name: str, total: int, missing: int) -> bool:
        within = self._limit is None or self._used(but=name) + total <= self._limit
        return within and shutil.disk_usage(self.folder).free >= missing

    def _drop_abandoned(self, but: str) -> None:
        """Remove what interrupted fetches of other entries left, unless somebody goes on with it now."""
        for path in self._partial.iterdir():
            if path.name != but:
                with suppress(BlockingIOError), self._lock(f"{path.name}.fetch", fcntl.LOCK_EX | fcntl.LOCK_NB):
                    shutil.rmtree(path)

    def _used(self, but: str) -> int:
        return sum(size_of(path) for path in self._entries(but))

    def _entries(self, but: str) -> list[Path]:
        return [path for path in self.folder.iterdir() if not path.name.startswith(".") and path.name != but]

    def _by_last_use(self, but: str) -> list[str]:
        stamped = [(path / COMPLETE, path.name) for path in self._entries(but)]
        return [
            name for _, name in sorted((mark.stat().st_mtime if mark.exists() else 0, name) for mark, name in stamped)
        ]

    def _evict(self, name: str) -> bool:
        try:
            with self._lock(f"{name}.use", fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(self.entry(name))
        except BlockingIOError:
            return False
        return True

    @contextmanager
    def _lock(self, name: str, how: int) -> Iterator[None]:
        with (self._locks / name).open("a") as file:
            fcntl.flock(file, how)
            yield


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
