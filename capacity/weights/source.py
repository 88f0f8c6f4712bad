"""What every source of weights offers: a list of files with checksums, and the bytes of a file from any offset."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from capacity.weights.errors import FetchError

CHUNK = 4 * 2**20


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a revision. Exactly one checksum is given: SHA-256 of the bytes, or git's SHA-1 of the blob."""

    path: str
    size: int
    sha256: str | None = None
    git_sha1: str | None = None

    def __post_init__(self) -> None:
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise FetchError(f"the source lists {self.path!r}, which leaves the model's folder: it isn't fetched")


class Source(Protocol):
    """A place that holds one pinned revision of a model."""

    def files(self) -> list[RemoteFile]:
        """All files of the revision. Raises FetchError when there is no such revision, TransferError when it is worth another try."""
        ...

    def read(self, file: RemoteFile, offset: int) -> Iterator[bytes]:
        """The file's bytes from an offset. Raises TransferError when the connection breaks."""
        ...
