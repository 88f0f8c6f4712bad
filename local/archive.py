"""Container images without a builder: plain files become tar layers, layers become a docker-archive for `ctr images import`."""

import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

_EPOCH = 0


@dataclass(frozen=True)
class Entry:
    """One path of a layer: a file (`source` is its bytes or where to read them), a link (`link`) or a folder (neither)."""

    path: str
    source: bytes | Path | None = None
    link: str | None = None
    mode: int | None = None

    def default_mode(self) -> int:
        """The permission bits: the given ones, else those of the source file, else 0644 for bytes and 0755 for folders."""
        if self.mode is not None:
            return self.mode
        if isinstance(self.source, Path):
            return stat.S_IMODE(self.source.stat().st_mode)
        return 0o644 if self.source is not None else 0o755


@dataclass(frozen=True)
class ImageConfig:
    """What a container of the image runs by default; `user` is `uid:gid`."""

    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "0:0"
    working_directory: str = "/"
    architecture: str = "amd64"

    def document(self, diff_ids: Sequence[str]) -> bytes:
        """The image configuration of the OCI image specification, as canonical JSON."""
        return _json(
            {
                "architecture": self.architecture,
                "os": "linux",
                "config": {
                    "Entrypoint": list(self.command),
                    "Env": [f"{name}={value}" for name, value in sorted(self.environment.items())],
                    "User": self.user,
                    "WorkingDir": self.working_directory,
                },
                "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
                "history": [],
            }
        )


def tree(source: Path, path: str) -> list[Entry]:
    """Everything below the folder `source`, to appear below `path`; links stay links, sockets and devices are left out."""
    entries = [Entry(path, mode=stat.S_IMODE(source.stat().st_mode))]
    for folder, folders, files in os.walk(source):
        for name in [*folders, *files]:
            found = Path(folder, name)
            target = str(PurePosixPath(path) / found.relative_to(source).as_posix())
            if found.is_symlink():
                entries.append(Entry(target, link=os.readlink(found)))
            elif found.is_dir():
                entries.append(Entry(target, mode=stat.S_IMODE(found.stat().st_mode)))
            elif found.is_file():
                entries.append(Entry(target, found))
    return entries


def write_layer(target: Path, entries: Iterable[Entry]) -> None:
    """Write a tar layer whose bytes depend on the entries alone: sorted, owned by root, without times."""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as layer:
        for entry in sorted(entries, key=lambda entry: entry.path):
            _add_entry(layer, entry)


@dataclass(frozen=True)
class Image:
    """An image to write: its name and tag, its uncompressed tar layers, lowest first, and how it runs."""

    reference: str
    layers: Sequence[Path]
    config: ImageConfig


def write_images(target: Path, images: Sequence[Image]) -> list[str]:
    """Write one docker-archive with all the images, a layer that several share only once; returns the configurations' digests.

    The archive appears under its name only when it is whole.
    """
    diff_ids = {layer: _sha256(layer) for image in images for layer in image.layers}
    documents = [image.config.document([f"sha256:{diff_ids[layer]}" for layer in image.layers]) for image in images]
    digests = [hashlib.sha256(document).hexdigest() for document in documents]
    names = {layer: f"{diff_id}/layer.tar" for layer, diff_id in diff_ids.items()}
    manifest = [
        {"Config": f"{digest}.json", "RepoTags": [image.reference], "Layers": [names[layer] for layer in image.layers]}
        for image, digest in zip(images, digests, strict=True)
    ]
    partial = target.with_name(f".{target.name}.partial")
    with tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, document in {f"{d}.json": document for d, document in zip(digests, documents, strict=True)}.items():
            _add_bytes(archive, name, document)
        for name, layer in {name: layer for layer, name in names.items()}.items():
            _add_file(archive, tarfile.TarInfo(name), layer)
        _add_bytes(archive, "manifest.json", _json(manifest))
    partial.replace(target)
    return [f"sha256:{digest}" for digest in digests]


def write_image(target: Path, reference: str, layers: Sequence[Path], config: ImageConfig) -> str:
    """Write a docker-archive with one image, as `write_images` does; returns its configuration's digest."""
    return write_images(target, [Image(reference, layers, config)])[0]


def _add_entry(layer: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path.strip("/") or ".")
    info.mtime = _EPOCH
    if entry.link is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
        layer.addfile(info)
        return
    info.mode = entry.default_mode()
    if entry.source is None:
        info.type = tarfile.DIRTYPE
        layer.addfile(info)
    elif isinstance(entry.source, bytes):
        info.size = len(entry.source)
        layer.addfile(info, io.BytesIO(entry.source))
    else:
        _add_file(layer, info, entry.source)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def _add_file(archive: tarfile.TarFile, info: tarfile.TarInfo, source: Path) -> None:
    info.size = source.stat().st_size
    with source.open("rb") as content:
        archive.addfile(info, content)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
