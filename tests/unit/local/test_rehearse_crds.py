"""Where a rehearsal finds Kthena's CRDs: a folder that was named, one beside the checkout, or Kthena's source at the module proxy."""

import json
from pathlib import Path

import pytest

from local.errors import LocalError
from local.rehearse import crds

LAYOUT = Path("charts/kthena/charts/workload/crds/servings.yaml")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(crds.VARIABLE, raising=False)
    monkeypatch.setattr(crds, "CHECKOUT", tmp_path / "checkout")


def go_that_says(answer: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that answers every call with one JSON document, and writes down what it was asked."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "go"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {folder}/asked\ncat <<'.'\n{json.dumps(answer)}\n.\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return folder / "asked"


def test_a_named_folder_comes_first_and_its_sibling_serves_the_other_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("kthena-v0.4.0", "kthena-v1.0.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text("{}")
    monkeypatch.setenv(crds.VARIABLE, str(tmp_path / "kthena-v0.4.0"))
    assert crds.crd_files("0.4") == [tmp_path / "kthena-v0.4.0" / "a.yaml"]
    assert crds.crd_files("1.0") == [tmp_path / "kthena-v1.0.0" / "a.yaml"]


def test_a_named_folder_that_is_none_is_an_error_and_nothing_else_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(crds.VARIABLE, str(tmp_path / "elsewhere"))
    with pytest.raises(LocalError, match=r"KTHENA_CRDS=.*elsewhere is not .*Kthena 0\.4.*kthena-v0\.4\.0"):
        crds.crd_files("0.4")


def test_without_a_folder_they_come_from_kthenas_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "source"
    (source / LAYOUT).parent.mkdir(parents=True)
    (source / LAYOUT).write_text("{}")
    asked = go_that_says({"Dir": str(source)}, tmp_path, monkeypatch)
    assert crds.crd_files("1.0") == [source / LAYOUT]
    assert asked.read_text().split() == ["mod", "download", "-json", "github.com/volcano-sh/kthena@v1.0.0"]


def test_a_proxy_that_refuses_is_one_line_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go_that_says({"Error": "reading v0.4.0.info: 403 Forbidden\n\tnot available"}, tmp_path, monkeypatch)
    with pytest.raises(LocalError) as caught:
        crds.crd_files("0.4")
    assert "set KTHENA_CRDS to a folder kthena-v0.4.0" in str(caught.value)
    assert "403 Forbidden not available" in str(caught.value) and "\n" not in str(caught.value)


def test_a_machine_without_go_is_told_the_same_way_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LocalError, match=r"no CRDs of Kthena 1\.0: set KTHENA_CRDS.*Go is not on PATH"):
        crds.crd_files("1.0")
