"""Images go into containerd once, in one archive; `ctr` is played by a script that records what it is asked."""

import json
import tarfile
from pathlib import Path

import pytest

from local import runtime
from local.archive import Entry, write_layer
from local.errors import LocalError
from local.progress import Progress
from local.runtime import base, cache, containerd, engine, images, models
from settings.errors import SettingsError
from settings.local_runtime import LocalRuntime

CTR = """#!/bin/sh
echo "$@" >> "$RECORD/calls"
case "$*" in
  *" images list "*) cat "$RECORD/present";;
  *" images import "*) for file; do :; done; cp "$file" "$RECORD/imported.tar"; cat "$RECORD/error" >&2; exit "$(cat "$RECORD/code")";;
esac
"""
REFERENCES = {
    "router": "localhost/moonstack/router:aaaaaaaaaaaa",
    "mooncake": "localhost/moonstack/mooncake:bbbbbbbbbbbb",
}


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script's answers and what it was asked; the layers of REFERENCES are in the cache."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ctr").write_text(CTR)
    (tmp_path / "bin" / "ctr").chmod(0o755)
    for name, text in {"present": "", "error": "", "code": "0"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("RECORD", str(tmp_path))
    monkeypatch.setenv("MOONSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path / "state"))
    cache.runtime_dir().mkdir(parents=True)
    write_layer(base.layer(), [Entry("/etc/passwd", b"root")])
    for name, reference in REFERENCES.items():
        write_layer(images._own_layer(name, reference), [Entry(f"/{name}", b"x")])
    return tmp_path


def _import(record: Path) -> None:
    containerd.import_images(record / "sock", REFERENCES, Progress())


def test_all_missing_images_go_in_one_archive_with_their_common_layer_once(record: Path) -> None:
    _import(record)
    with tarfile.open(record / "imported.tar") as archive:
        names = archive.getnames()
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        tags = {tag for image in json.load(manifest) for tag in image["RepoTags"]}
    assert tags == set(REFERENCES.values())
    assert len([name for name in names if name.endswith("layer.tar")]) == 3
    assert len(names) == len(set(names))


def test_an_image_that_is_there_is_not_imported_again(record: Path) -> None:
    (record / "present").write_text("\n".join(REFERENCES.values()))
    _import(record)
    assert "import" not in (record / "calls").read_text()


def test_of_two_images_the_missing_one_is_imported(record: Path) -> None:
    (record / "present").write_text(REFERENCES["router"])
    _import(record)
    with tarfile.open(record / "imported.tar") as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        assert [image["RepoTags"] for image in json.load(manifest)] == [[REFERENCES["mooncake"]]]


def test_a_refusal_is_told_in_one_line_and_leaves_no_archive_behind(record: Path) -> None:
    (record / "code").write_text("1")
    (record / "error").write_text("ctr: no space left on device\n")
    with pytest.raises(LocalError, match=r"images import failed: ctr: no space left on device$"):
        _import(record)
    assert not list(cache.runtime_dir().glob(".import-*"))


def test_before_anything_is_built_the_fix_is_named(record: Path) -> None:
    with pytest.raises(SettingsError, match="run `make up` first"):
        runtime.import_images(record / "sock", Progress())


def test_what_was_built_is_what_the_stacks_read_and_the_cluster_gets(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "names", lambda: tuple(REFERENCES))
    monkeypatch.setattr(images, "ensure_layers", lambda name, progress: REFERENCES[name])
    monkeypatch.setattr(engine, "ensure", lambda progress: Path("/cache/engine"))
    monkeypatch.setattr(models, "ensure", lambda name, progress: models.Model(Path("/cache", name), "0" * 64))
    built = runtime.ensure(Progress())
    assert built == LocalRuntime.load()
    assert built.images == REFERENCES
    assert built.engine.host_path == "/cache/engine"
    assert set(built.models) == {"dev-wide", "dev-wide-b", "dev-tiny", "dev-tiny-b"}
    runtime.import_images(record / "sock", Progress())
    assert (record / "imported.tar").exists()
