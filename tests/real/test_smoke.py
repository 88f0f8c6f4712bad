"""Smoke on the deployed dev stack: green within its deadline, red on a fault, by every way in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rules import labels, names
from settings.settings import Settings
from settings.smoke import Way
from smoke import suite
from smoke.probes import authentication, connectivity
from smoke.report import Report
from smoke.runner import run_probes
from tests.real.conftest import ROOT, DevStack, kubectl

SMOKE = (sys.executable, "-m", "smoke")


def smoke(*arguments: str, key: str | None = None) -> subprocess.CompletedProcess[str]:
    """A smoke command on dev, with its output."""
    environment = {**os.environ, **({"MOONSTACK_SMOKE_KEY": key} if key else {})}
    command = [*SMOKE, *arguments, "--stack", "dev"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def proof(dev_stack: DevStack, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, str, str]:
    """One green run: the report, the page, and what was printed."""
    folder = tmp_path_factory.mktemp("smoke")
    done = smoke("run", "--json", str(folder / "r.json"), "--html", str(folder / "r.html"))
    assert done.returncode == 0, done.stderr
    return Report.model_validate_json((folder / "r.json").read_text()), (folder / "r.html").read_text(), done.stderr


def test_the_safe_probes_pass_within_their_deadline(proof: tuple[Report, str, str], dev_stack: DevStack):
    report, _, _ = proof
    assert report.verdict == "pass"
    assert report.seconds <= dev_stack.settings.smoke.deadline_seconds
    assert {probe.verdict for probe in report.probes} == {"pass"}, report.probes


def test_the_store_was_hit_by_decode_and_by_the_second_replica(proof: tuple[Report, str, str]):
    report, _, _ = proof
    assert report.evidence["shared-prefix:dev-wide"]["hits"] > 0
    assert report.evidence["second-replica:dev-wide"]["hits"] > 0


def test_no_key_is_in_report_page_or_output(proof: tuple[Report, str, str], dev_stack: DevStack):
    report, page, printed = proof
    for key in dev_stack.settings.keys.keys:
        value = dev_stack.key(key.id).strip()
        assert all(value not in text for text in (report.to_json(), page, printed))


def test_the_green_report_is_kept_in_the_namespace(proof: tuple[Report, str, str], dev_stack: DevStack):
    stored = json.loads(kubectl("-n", dev_stack.namespace, "get", "configmap", names.SMOKE_GREEN, "-o", "json"))
    assert Report.model_validate_json(stored["data"]["report.json"]).verdict == "pass"


@pytest.mark.parametrize("via", ["port-forward", "job"])
async def test_the_gateway_is_reached_through_the_cluster_too(dev_stack: DevStack, via: Way):
    changed = dev_stack.settings.smoke.model_copy(update={"via": via})
    settings: Settings = dev_stack.settings.model_copy(update={"smoke": changed})
    async with suite.live_stack(settings, "dev") as live:
        results, _ = await run_probes([*connectivity.probes(settings), *authentication.probes(settings)], live, 60)
    assert {result.verdict for result in results} == {"pass"}, results


def test_a_key_that_the_gateway_does_not_know_is_red_with_its_cause(dev_stack: DevStack, tmp_path: Path):
    done = smoke("run", "--json", str(tmp_path / "r.json"), key="sk-" + os.urandom(24).hex())
    assert done.returncode == 1
    report = Report.model_validate_json((tmp_path / "r.json").read_text())
    chat = next(probe for probe in report.probes if probe.name == "chat:dev-wide")
    assert chat.verdict == "fail"
    assert "the key is missing, malformed, expired or disabled" in (chat.cause or "")


def test_the_doctor_finds_no_error_on_the_healthy_stack(dev_stack: DevStack, tmp_path: Path):
    done = smoke("doctor", "--json", str(tmp_path / "d.json"))
    found = json.loads((tmp_path / "d.json").read_text())["findings"]
    assert [one for one in found if one["severity"] == "error"] == []
    assert done.returncode == 0


def test_the_doctor_finds_an_engine_that_is_ready_and_not_routed(dev_stack: DevStack, tmp_path: Path):
    selector = f"{labels.MODEL}=dev-wide,{labels.ROLE}=prefill"
    pod = kubectl("-n", dev_stack.namespace, "get", "pods", "-l", selector, "-o", "name").split()[0]
    kubectl("-n", dev_stack.namespace, "label", pod, f"{labels.ROUTED}=false", "--overwrite")
    try:
        assert smoke("doctor", "--json", str(tmp_path / "d.json")).returncode == 1
    finally:
        kubectl("-n", dev_stack.namespace, "label", pod, f"{labels.ROUTED}=true", "--overwrite")
    found = json.loads((tmp_path / "d.json").read_text())["findings"]
    assert ("ready-not-routed", pod) in [(one["id"], one["object"]) for one in found]
