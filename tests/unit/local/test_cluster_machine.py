"""What is asked of the machine, and what is said when it has it not."""

import dataclasses
import ipaddress
import os
import socket
from pathlib import Path

import pytest

from local import packages, prerequisites, state
from local.cluster import listener, teardown
from local.cluster.files import write
from local.cluster.layout import Layout, layout
from local.errors import LocalError
from local.progress import Progress

SHORT = Path("/tmp/state")
"""A state folder whose sockets fit, which a test's own need not be; it is looked at and never made."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MOONSTACK_CACHE", str(tmp_path / "cache"))
    return layout()


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("MOONSTACK_SUBNET", "10.0.0.0/33", "MOONSTACK_SUBNET=10.0.0.0/33 is no IPv4 network"),
        ("MOONSTACK_SUBNET", "10.0.0.0/31", "is too small, the host and the node need a /30"),
        ("MOONSTACK_PORT", "https", "MOONSTACK_PORT=https is no port"),
        ("MOONSTACK_PORT", "70000", "MOONSTACK_PORT=70000 is no port"),
    ],
)
def test_an_impossible_address_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, line: str):
    monkeypatch.setenv(variable, value)
    with pytest.raises(LocalError, match=line):
        layout()


def test_the_subnet_and_the_port_can_be_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MOONSTACK_SUBNET", "192.168.77.4/30")
    monkeypatch.setenv("MOONSTACK_PORT", "9443")
    place = layout()
    assert (place.host, place.node, place.port) == ("192.168.77.5", "192.168.77.6", 9443)


def test_a_taken_port_is_answered_with_its_holder_and_the_way_out(place: Layout):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = dataclasses.replace(place, port=other.getsockname()[1])
        with pytest.raises(LocalError, match=rf"port {taken.port} is taken by .*{os.getpid()}.*MOONSTACK_PORT"):
            listener.require_free(taken)
    listener.require_free(taken)


def test_without_root_only_that_is_said(place: Layout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LocalError, match="needs root") as caught:
        prerequisites.check(place)
    assert "\n" not in str(caught.value)


def test_everything_that_a_machine_lacks_is_said_at_once(place: Layout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites, "_kernel", lambda: iter(()))
    monkeypatch.setattr(prerequisites, "machine_bytes", lambda: 8 << 30)
    monkeypatch.setattr(prerequisites, "FRESH_DISK_BYTES", 10**18)
    monkeypatch.setattr(
        prerequisites,
        "_output",
        lambda *command: '[{"dst": "10.203.0.0/16", "dev": "vpn0"}]' if command[0] == "ip" else "",
    )
    with pytest.raises(LocalError) as caught:
        prerequisites.check(dataclasses.replace(place, state=SHORT))
    lines = str(caught.value).splitlines()
    assert len(lines) == 3, lines
    assert "8.0 GiB of memory" in lines[0]
    assert "MOONSTACK_CACHE" in lines[1]
    assert "route 10.203.0.0/16 by vpn0" in lines[2]
    assert "MOONSTACK_SUBNET" in lines[2]


def test_a_path_too_long_for_sockets_is_named(place: Layout, monkeypatch: pytest.MonkeyPatch):
    deep = dataclasses.replace(place, state=Path("/tmp", "x" * 100))
    assert any("too long a path" in line for line in prerequisites._resources(deep))
    assert not any(
        "too long a path" in line for line in prerequisites._resources(dataclasses.replace(place, state=SHORT))
    )


def test_a_folder_with_other_files_is_never_taken_as_state(place: Layout):
    place.state.mkdir()
    (place.state / "thesis.txt").write_text("years of work")
    with pytest.raises(LocalError, match="holds other files"):
        state.claim()
    assert not state.is_claimed()


def test_a_claimed_folder_is_for_its_owner_alone_and_stays_claimed(place: Layout):
    assert state.claim() == place.state
    (place.state / "kubeconfig").touch()
    assert state.claim() == place.state
    assert place.state.stat().st_mode & 0o077 == 0


def test_nothing_is_removed_while_something_is_mounted_below(place: Layout, monkeypatch: pytest.MonkeyPatch):
    state.claim()
    mounted = place.state / "data" / "pods" / "volume"
    mounted.mkdir(parents=True)
    (mounted / "precious").touch()
    monkeypatch.setattr(teardown, "_mount_points", lambda: [Path("/"), mounted])
    with pytest.raises(LocalError, match=f"umount {mounted}"):
        teardown.remove_state(place)
    assert (mounted / "precious").exists()
    monkeypatch.setattr(teardown, "_mount_points", lambda: [Path("/")])
    teardown.remove_state(place)
    assert not place.state.exists()


def test_only_the_containers_of_this_containerd_are_looked_for(
    place: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cgroups = tmp_path / "cgroups"
    for controller in ("memory", "pids"):
        for container, pid in (("ours", "11"), ("theirs", "22")):
            (cgroups / controller / "k8s.io" / container).mkdir(parents=True)
            (cgroups / controller / "k8s.io" / container / "cgroup.procs").write_text(f"{pid}\n")
    (place.data / "containerd/state/io.containerd.runtime.v2.task/k8s.io/ours").mkdir(parents=True)
    monkeypatch.setattr(teardown, "_CGROUPS", cgroups)
    assert teardown._in_cgroups(place) == {11}


def test_a_file_that_says_the_same_is_not_touched(tmp_path: Path):
    target = write(tmp_path / "deep" / "file", "text")
    os.utime(target, (1, 1))
    write(target, "text")
    assert target.stat().st_mtime == 1
    write(target, "other")
    assert target.stat().st_mtime > 1


def _dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, apt: str) -> None:
    for name, text in (("dpkg-query", f"echo '{installed} installed'; echo 'gone config-files'"), ("apt-get", apt)):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_a_removed_package_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _dpkg(tmp_path, monkeypatch, "runc", "exit 9")
    assert packages.missing(["runc", "gone", "containerd", "gone"]) == ["gone", "containerd"]


def test_nothing_is_fetched_when_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _dpkg(tmp_path, monkeypatch, "runc", "exit 9")
    packages.ensure(["runc"], Progress())


def test_services_are_held_back_while_packages_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "_POLICY", policy)
    monkeypatch.setattr(packages, "_wait_for_refusal", lambda progress: None)
    monkeypatch.setattr(packages, "_stay_disabled", lambda installed: None)
    _dpkg(tmp_path, monkeypatch, "runc", f"sh {policy}; echo $1 $? >> {tmp_path}/held")
    packages.ensure(["gone"], Progress())
    assert (tmp_path / "held").read_text().splitlines() == ["--quiet 101", "--quiet 101"]
    assert not policy.exists()


def test_a_failing_installation_is_told_in_apts_words_and_undoes_the_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "_POLICY", policy)
    monkeypatch.setattr(packages, "_wait_for_refusal", lambda progress: None)
    _dpkg(tmp_path, monkeypatch, "runc", "echo E: no such package >&2; exit 100")
    with pytest.raises(LocalError, match="E: no such package"):
        packages.ensure(["gone"], Progress())
    assert not policy.exists()


def test_a_policy_of_the_users_own_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    monkeypatch.setattr(packages, "_POLICY", policy)
    with packages._no_services_started():
        assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_overlapping_networks_other_than_ours_are_found(place: Layout, monkeypatch: pytest.MonkeyPatch):
    routes = (
        '[{"dst": "default", "dev": "eth0"}, {"dst": "10.203.0.0/30", "dev": "moonstack0"}, {"dst": "10.1.0.0/16"}]'
    )
    monkeypatch.setattr(prerequisites, "_output", lambda *command: routes)
    assert list(prerequisites._addresses(place)) == []
    moved = dataclasses.replace(place, subnet=ipaddress.IPv4Network("10.1.2.0/30"))
    assert len(list(prerequisites._addresses(moved))) == 1
