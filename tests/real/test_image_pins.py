"""Every package that an engine image pins exists for every architecture of the image."""

import subprocess
import sys
from pathlib import Path

import pytest

from rules.versions import ENGINES, EngineVersions

PLATFORMS = {"amd64": "x86_64-manylinux_2_35", "arm64": "aarch64-manylinux_2_35"}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_the_pins_of_an_engine_resolve_for_its_platforms(engine: EngineVersions):
    pins = [f"{engine.mooncake_package}=={engine.mooncake}"]
    if engine.base:
        pins.append(f"vllm=={engine.vllm}")
    if engine.vllm_ascend:
        pins.append(f"vllm-ascend=={engine.vllm_ascend}")
    for architecture in engine.architectures:
        command = [
            str(Path(sys.prefix, "bin", "uv")),
            "pip",
            "compile",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
        ]
        command += ["--python-version", "3.11", "--python-platform", PLATFORMS[architecture], "-"]
        done = subprocess.run(command, input="\n".join(pins), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{engine.image} on {architecture}: {done.stderr}"
