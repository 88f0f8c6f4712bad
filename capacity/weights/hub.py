"""Weights on a model hub: Hugging Face or a mirror of it, and ModelScope. Both state the checksums of their files."""

from collections.abc import Iterator
from urllib.parse import quote

from capacity.weights.http import HttpReader
from capacity.weights.source import RemoteFile

HUGGING_FACE = "https://huggingface.co"
MODEL_SCOPE = "https://modelscope.cn"


class HubSource:
    """One commit of a repository on Hugging Face or a mirror."""

    def __init__(self, repository: str, revision: str, endpoint: str | None, token: str | None) -> None:
        self._repository = repository
        self._revision = revision
        self._reader = HttpReader(endpoint or HUGGING_FACE, token)

    def files(self) -> list[RemoteFile]:
        """The commit's files: large ones with SHA-256, small ones with git's own digest."""
        missing = f"{self._repository} has no revision {self._revision}: pin a commit that exists, in full"
        page: str | None = f"/api/models/{self._repository}/tree/{self._revision}"
        parameters = {"recursive": "true"}
        found: list[RemoteFile] = []
        while page:
            entries, page = self._reader.json(page, missing, **parameters)
            parameters = {}
            for entry in entries:
                if entry["type"] == "file":
                    large = entry.get("lfs")
                    sums = {"sha256": large["oid"]} if large else {"git_sha1": entry["oid"]}
                    found.append(RemoteFile(entry["path"], entry["size"], **sums))
        return found

    def read(self, file: RemoteFile, offset: int) -> Iterator[bytes]:
        """The file's bytes from an offset."""
        return self._reader.read(f"/{self._repository}/resolve/{self._revision}/{quote(file.path)}", offset)


class ModelScopeSource:
    """One revision of a repository on ModelScope."""

    def __init__(self, repository: str, revision: str, endpoint: str | None, token: str | None) -> None:
        self._repository = repository
        self._revision = revision
        self._reader = HttpReader(endpoint or MODEL_SCOPE, token)

    def files(self) -> list[RemoteFile]:
        """The revision's files, each with its SHA-256."""
        missing = f"{self._repository} has no revision {self._revision} on ModelScope: pin one that exists"
        path = f"/api/v1/models/{self._repository}/repo/files"
        answer, _ = self._reader.json(path, missing, Revision=self._revision, Recursive="true")
        entries = (answer.get("Data") or {}).get("Files") or ()
        return [
            RemoteFile(entry["Path"], entry["Size"], sha256=entry["Sha256"])
            for entry in entries
            if entry["Type"] == "blob"
        ]

    def read(self, file: RemoteFile, offset: int) -> Iterator[bytes]:
        """The file's bytes from an offset."""
        return self._reader.read(f"/models/{self._repository}/resolve/{self._revision}/{quote(file.path)}", offset)
