"""Images for a registry: versions from one matrix, and nothing built where its parts don't exist."""

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from local import images
from local.errors import LocalError
from rules.versions import ENGINES, KTHENA

ROOT = Path(__file__).parents[3]


def test_every_image_of_a_stack_has_a_containerfile():
    assert all(build.containerfile.exists() for build in images.builds())
    assert {build.name for build in images.builds()} == {*images.OWN, "engine-ascend", "engine-nvidia"}


@pytest.mark.parametrize("name", ["engine-ascend", "engine-nvidia"])
def test_an_engines_containerfile_names_no_version_of_its_own(name: str):
    text = (ROOT / "images" / name / "Containerfile").read_text()
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert ENGINES[name].mooncake_package in code
    assert not re.search(r"\d+\.\d+\.\d+", code)
    (build,) = images.builds([name])
    passed = dict(build.arguments)
    assert passed == {"BASE": ENGINES[name].base, "MOONCAKE": ENGINES[name].mooncake}
    assert all(f"ARG {argument}" in code for argument in passed)


def test_the_base_image_has_the_engine_version_of_the_matrix():
    for engine in ENGINES.values():
        if engine.base:
            assert engine.base.endswith(f":v{engine.vllm_ascend or engine.vllm}")


def test_vllm_ascend_and_vllm_have_one_version():
    """vllm-project/vllm-ascend, versioning policy."""
    assert ENGINES["engine-ascend"].vllm_ascend == ENGINES["engine-ascend"].vllm


def test_docs_show_the_matrix_as_it_is():
    text = (ROOT / "docs" / "serving.md").read_text()
    for engine in ENGINES.values():
        for value in (engine.vllm, engine.vllm_ascend, engine.cann, engine.mooncake):
            assert value is None or value in text, value
    assert all(release in text for release in KTHENA.values())


def test_an_image_is_built_and_pushed_and_named_by_its_digest(monkeypatch: pytest.MonkeyPatch):
    ran: list[list[str]] = []

    def run(command: list[str]) -> None:
        ran.append(command)
        if "--digestfile" in command:
            Path(command[command.index("--digestfile") + 1]).write_text(f"sha256:{'a' * 64}\n")

    monkeypatch.setattr(images, "run", run)
    monkeypatch.setattr(images, "find_tool", lambda: "buildah")
    monkeypatch.setattr(images, "architecture", lambda: "amd64")
    found = images.publish("registry.example.com/ai/", "7", ["engine-nvidia"], Console(quiet=True))
    assert found == {"engine-nvidia": f"registry.example.com/ai/moonstack/engine-nvidia@sha256:{'a' * 64}"}
    assert [command[1] for command in ran] == ["build", "push"]
    assert f"MOONCAKE={ENGINES['engine-nvidia'].mooncake}" in ran[0]


def test_an_image_without_parts_for_this_machine_is_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(images, "run", lambda _: pytest.fail("nothing may be built"))
    monkeypatch.setattr(images, "find_tool", lambda: "buildah")
    monkeypatch.setattr(images, "architecture", lambda: "arm64")
    assert images.publish("registry.example.com", "7", ["engine-nvidia"], Console(quiet=True)) == {}


def test_a_digest_is_read_from_either_tool(tmp_path: Path):
    file = tmp_path / "digest"
    file.write_text(json.dumps({"containerimage.digest": f"sha256:{'b' * 64}"}))
    assert images.read_digest(file) == f"sha256:{'b' * 64}"
    file.write_text("")
    with pytest.raises(LocalError, match="no digest"):
        images.read_digest(file)


def test_an_unknown_image_is_answered_with_those_that_there_are():
    with pytest.raises(LocalError, match="engine-ascend"):
        images.builds(["engine-tpu"])
