"""The tool chain: what on PATH is used, what is built, and what a machine with the wrong Go is told."""

from pathlib import Path

import pytest

from local import tools
from local.errors import LocalError
from local.tools import build, go
from local.tools.catalogue import BUILD_OF, BUILDS, GO_MODULES, GoBuild


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A PATH that holds only the shell scripts it is asked to make, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("MOONSTACK_CACHE", str(tmp_path / "cache"))

    def make(name: str, text: str) -> Path:
        script = folder / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        return script

    return make


def _go(on_path, version: str, toolchain: str = "auto") -> None:
    on_path("go", f"echo go{version}; echo {toolchain}")


def test_an_unknown_tool_is_answered_with_the_known_ones(on_path):
    with pytest.raises(LocalError, match=r"nope is no tool of ours; choose among: .*pulumi"):
        tools.ensure(["nope"])


def test_a_machine_without_go_is_told_where_to_get_it(on_path):
    with pytest.raises(LocalError, match=r"Go is not on PATH.*go\.dev/doc/install"):
        go.require([GO_MODULES / "etcd"])


def test_a_go_that_cannot_fetch_newer_ones_is_too_old(on_path):
    _go(on_path, "1.19.8")
    with pytest.raises(LocalError, match=r"Go 1\.19\.8 is too old, the tools need 1\.26"):
        go.require([GO_MODULES / "etcd"])


def test_a_go_that_fetches_newer_ones_is_enough(on_path):
    _go(on_path, "1.21.0")
    go.require([GO_MODULES / "etcd"])


def test_a_go_that_is_kept_from_fetching_is_too_old(on_path):
    _go(on_path, "1.24.1", toolchain="local")
    with pytest.raises(LocalError, match="unset GOTOOLCHAIN"):
        go.require([GO_MODULES / "etcd"])


def test_the_newest_of_several_modules_decides(on_path):
    _go(on_path, "1.26.5", toolchain="local")
    go.require([GO_MODULES / "etcd"])
    with pytest.raises(LocalError, match=r"need 1\.26\.6"):
        go.require([GO_MODULES / "etcd", GO_MODULES / "pulumi"])


def test_a_users_own_new_enough_pulumi_is_used_and_brings_its_own_provider(on_path):
    own = on_path("pulumi", "echo v3.300.1")
    assert tools.path("pulumi") == own
    assert tools.to_build(["pulumi", "pulumi-resource-kubernetes"]) == []


def test_a_users_old_pulumi_is_not_used(on_path):
    on_path("pulumi", "echo v3.237.9")
    assert [one.module for one in tools.to_build(["pulumi", "pulumi-resource-kubernetes"])] == ["pulumi", "provider"]


def test_a_component_on_path_is_used_only_in_the_pinned_version(on_path):
    kubelet = on_path("kubelet", "echo Kubernetes v1.37.2")
    on_path("kube-proxy", "echo Kubernetes v1.36.0")
    assert tools.path("kubelet") == kubelet
    assert tools.find("kube-proxy") is None


def test_a_tool_that_is_not_there_is_named_with_the_way_to_get_it(on_path):
    with pytest.raises(LocalError, match="etcd is not there yet; run: python -m local tools"):
        tools.path("etcd")


def test_an_interrupted_build_is_done_again(on_path):
    etcd = BUILD_OF["etcd"]
    binary = build.folder(etcd) / "etcd"
    binary.parent.mkdir(parents=True)
    binary.write_bytes(b"\x7fELF half of a program")
    binary.chmod(0o755)
    assert tools.to_build(["etcd"]) == [etcd]
    binary.write_text("#!/bin/sh\necho etcd Version: 3.7.3\n")
    assert tools.to_build(["etcd"]) == []


def test_a_binary_that_cannot_say_its_version_is_broken(tmp_path: Path):
    binary = tmp_path / "etcd"
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    assert not build.is_good(BUILD_OF["etcd"], binary)


def test_other_flags_are_another_build():
    etcd = BUILD_OF["etcd"]
    other = GoBuild(etcd.module, etcd.version, etcd.binaries, etcd.minutes, flags=("-race",))
    assert build.folder(etcd) != build.folder(other)


def test_every_build_has_a_pinned_module():
    for one in BUILDS:
        assert go.wanted(one.folder) >= (1, 26)
        assert (one.folder / "go.sum").exists() or "require" not in (one.folder / "go.mod").read_text()


def test_the_tools_come_before_the_users_path(on_path, monkeypatch: pytest.MonkeyPatch):
    folders = tools.search_path().split(":")
    assert folders[1] == str(tools.bin_dir())
    assert len(folders) == 3


def test_a_command_that_fails_is_named(on_path):
    failing = on_path("failing", "exit 3")
    with pytest.raises(LocalError, match="failing now failed with exit code 3"):
        tools.run([str(failing), "now"])
