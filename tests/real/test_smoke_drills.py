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
    path: Path = tmp_path_factory.mktemp("drills") / "d.json"
    command = [
        sys.executable,
        "-m",
        "smoke",
        "drill",
        "--stack",
        "dev",
        "--only",
        ",".join(DRILLS),
        "--json",
        str(path),
    ]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    return {one["name"]: one for one in json.loads(path.read_text())["drills"]}


@pytest.mark.parametrize("name", DRILLS)
def test_the_drill_loses_nothing(results: dict[str, dict[str, object]], name: str):
    result = results[name]
    assert result["verdict"] == "pass", result
    assert result["lost"] == 0
    assert int(str(result["requests"])) > 3
