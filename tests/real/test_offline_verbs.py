"""A production stack without production: previewed with the policy pack, and written out as files; no cluster is asked."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.real.conftest import local, run

INITIAL = "scaled-without-replicas"
"""Pulumi writes a scaled workload's replicas once and ignores them from then on; a manifest can't say so."""


@pytest.mark.parametrize("stack", ["pre", "prod"])
def test_a_preview_from_nothing_shows_every_kind_of_object_and_passes_the_pack(stack: str):
    done = local("preview", "--stack", stack)
    said = done.stdout + done.stderr
    for kind in (
        "moonstack:gateway:Gateway",
        "moonstack:keys:KeyAgent",
        "moonstack:serving:KthenaServing",
        "HorizontalPodAutoscaler",
    ):
        assert kind in said, kind
    assert "moonstack@" in said and "[mandatory]" not in said


def test_a_rendered_stack_is_one_file_an_object_and_keeps_the_rules(tmp_path: Path):
    out = tmp_path / "out"
    local("render", "--stack", "prod", "--out", str(out))
    objects = [yaml.safe_load(path.read_text()) for path in sorted(out.rglob("*.yaml"))]
    assert {"Namespace", "Deployment", "ModelServing", "NetworkPolicy", "HorizontalPodAutoscaler"} <= {
        o["kind"] for o in objects
    }
    assert len({(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects}) == len(objects)
    scanned = run(sys.executable, "-m", "policies", "scan", str(out), "--stack", "prod", check=False)
    broken = set(re.findall(r"^mandatory +\w+ +([\w-]+):", scanned.stdout, re.MULTILINE))
    assert broken <= {INITIAL}, scanned.stdout
