"""Production stacks on simulated nodes: placed by the real scheduler, or refused with the pool and the missing chips."""

import json
from pathlib import Path

import yaml

from tests.real.conftest import ROOT, kubectl, local
from tests.unit.serving.kthena_crds import crds


def test_prod_is_placed_within_three_minutes(cluster: Path):
    crds("0.4")
    report = json.loads(local("rehearse", "--stack", "prod", "--json", timeout=400).stdout)
    assert report["ok"] and report["placed"] == report["pods"] >= 100
    assert report["seconds"] < 180
    used = {pool["pool"]: pool["used"] for pool in report["pools"]}
    assert used == {"npu-compute": 160, "npu-memory": 80, "h100": 48, "a100": 24}
    assert kubectl("get", "nodes", "--no-headers").count("\n") == 1, "the simulated nodes are gone"
    assert "moonstack-rehearsal" not in kubectl("get", "namespaces")


def test_a_stack_that_does_not_fit_names_the_pool_and_the_missing_chips(cluster: Path, tmp_path: Path):
    """Chips suffice, memory doesn't: only a scheduler finds that."""
    crds("0.4")
    pools = yaml.safe_load((ROOT / "Pulumi.pre.yaml").read_text())["config"]["moonstack:nodePools"]
    pools[1] |= {"memory": "600Gi", "count": 1}
    instead = tmp_path / "pools.yaml"
    instead.write_text(yaml.safe_dump({"nodePools": pools}))
    done = local("rehearse", "--stack", "pre", "--json", "--instead", str(instead), timeout=400, check=False)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == 1 and not report["ok"]
    (lost,) = [pool for pool in report["pools"] if pool["missing"]]
    assert (lost["pool"], lost["missing"]) == (pools[1]["name"], 4)
    assert all("Insufficient memory" in pod["reason"] for pod in report["unplaced"])
