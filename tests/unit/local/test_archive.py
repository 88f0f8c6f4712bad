"""Images are made from plain files, byte for byte the same on every machine."""

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest

from local.archive import Entry, ImageConfig, tree, write_image, write_layer


def _layer(folder: Path, name: str, *entries: Entry) -> Path:
    write_layer(folder / name, entries)
    return folder / name


def test_a_layer_depends_on_its_entries_alone(tmp_path: Path) -> None:
    source = tmp_path / "tool"
    source.write_text("x")
    first = _layer(tmp_path, "1.tar", Entry("/b", source, mode=0o755), Entry("/a", b"1"))
    os.utime(source, (1, 1))
    second = _layer(tmp_path, "2.tar", Entry("/a", b"1"), Entry("/b", source, mode=0o755))
    assert first.read_bytes() == second.read_bytes()


def test_a_layer_carries_modes_links_and_content(tmp_path: Path) -> None:
    layer = _layer(
        tmp_path, "l.tar", Entry("/bin"), Entry("/bin/tool", b"run", mode=0o755), Entry("/bin/sh", link="tool")
    )
    with tarfile.open(layer) as archive:
        tool = archive.getmember("bin/tool")
        content = archive.extractfile(tool)
        assert content is not None and content.read() == b"run"
        assert (tool.mode, tool.uid, tool.mtime) == (0o755, 0, 0)
        assert archive.getmember("bin/sh").linkname == "tool"
        assert archive.getmember("bin").isdir()


def test_a_tree_keeps_links_and_modes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "tool").write_text("x")
    (source / "deep" / "tool").chmod(0o750)
    (source / "again").symlink_to("deep/tool")
    (source / "folder").symlink_to("deep")
    entries = {entry.path: entry for entry in tree(source, "/opt/x")}
    assert entries["/opt/x/deep/tool"].default_mode() == 0o750
    assert entries["/opt/x/again"].link == "deep/tool"
    assert entries["/opt/x/folder"].link == "deep"


def test_an_image_lists_its_layers_by_the_digest_of_their_content(tmp_path: Path) -> None:
    layers = [_layer(tmp_path, "1.tar", Entry("/a", b"1")), _layer(tmp_path, "2.tar", Entry("/b", b"2"))]
    config = ImageConfig(command=["/a"], environment={"B": "2", "A": "1"}, user="65532:65532")
    digest = write_image(tmp_path / "image.tar", "localhost/x:1", layers, config)
    with tarfile.open(tmp_path / "image.tar") as archive:
        names = archive.getnames()
        manifest = json.loads(_read(archive, "manifest.json"))[0]
        document = _read(archive, manifest["Config"])
    assert digest == f"sha256:{hashlib.sha256(document).hexdigest()}"
    assert manifest["RepoTags"] == ["localhost/x:1"]
    described = json.loads(document)
    wanted = [f"sha256:{hashlib.sha256(layer.read_bytes()).hexdigest()}" for layer in layers]
    assert described["rootfs"]["diff_ids"] == wanted
    assert described["config"]["Env"] == ["A=1", "B=2"]
    assert all(layer in names for layer in manifest["Layers"])


def test_an_interrupted_image_leaves_nothing_under_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_image(tmp_path / "image.tar", "localhost/x:1", [tmp_path / "absent.tar"], ImageConfig())
    assert not (tmp_path / "image.tar").exists()


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    content = archive.extractfile(name)
    assert content is not None
    return content.read()
