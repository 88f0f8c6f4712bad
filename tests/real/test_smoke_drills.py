"""A drill on the deployed dev stack loses nothing; `make drill` runs all of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.conftest import ROOT, DevStack

DRILLS = ("kill-master", "restart-gateway", "kill-engine")


@pytest.fixture(scope="module")
def results(dev_stack: DevStack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    return drilled(tmp_path_factory.mktemp("drills"), *DRILLS)


@pytest.mark.parametrize("name", DRILLS)
def test_the_drill_loses_nothing(results: dict[str, dict[str, object]], tmp_path: Path, name: str):
    result = results.pop(name, None) or drilled(tmp_path, name)[name]
    assert result["verdict"] == "pass", result
    assert result["lost"] == 0
    assert int(str(result["requests"])) > 3


def drilled(folder: Path, *drills: str) -> dict[str, dict[str, object]]:
    """Results by drill; a test that is tried again takes its part away again."""
    command = [sys.executable, "-m", "smoke", "drill", "--stack", "dev", "--only", ",".join(drills)]
    path = folder / "drills.json"
    subprocess.run([*command, "--json", str(path)], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    return {one["name"]: one for one in json.loads(path.read_text())["drills"]}
