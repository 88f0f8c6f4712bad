"""The doctor on models of Kthena without its controller, and as that controller leaves them: real API server, real definitions."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from local.cluster.api import Api
from local.rehearse.cluster import definitions
from local.rehearse.crds import custom_resources
from settings.settings import Settings
from smoke import kthena
from smoke.cluster import Cluster
from smoke.doctor.diagnosis import findings
from smoke.doctor.gather import Gatherer
from smoke.doctor.kthena import CATALOGUE
from tests.real.conftest import kubectl
from tests.real.test_kthena_objects import api, namespace, settings  # noqa: F401  (fixtures)
from tests.real.test_kthena_upgrade import applied, objects_of
from tests.unit.serving.kthena_crds import crds

AFTERWARDS = timedelta(seconds=kthena.PATIENCE_SECONDS + 1)


@pytest.fixture
def declared(api: Api, namespace: None, tmp_path: Path) -> Iterator[Settings]:  # noqa: F811
    """prod's models on the local API server, whose Kthena has definitions and no controller."""
    crds("1.0")
    prod = settings("1.0")
    with definitions(api, custom_resources(prod)):
        applied(tmp_path / "objects", objects_of("1.0", tmp_path / "objects"))
        yield prod.model_copy(update={"cluster": prod.cluster.model_copy(update={"kubeconfig": "local"})})


def named(settings: Settings, later: timedelta = timedelta(0)) -> set[tuple[str, str]]:
    """Diagnosis and object, by a clock that is ahead."""

    async def look() -> set[tuple[str, str]]:
        facts = await Gatherer(settings, await Cluster.connect(settings.cluster), "prod").facts()
        return {(one.id, one.object) for one in findings(CATALOGUE, replace(facts, now=facts.now + later))}

    return asyncio.run(look())


def test_a_kthena_without_its_controller_is_named_and_one_that_serves_is_not(declared: Settings):
    served, (_, scalers) = kthena.served(declared), kthena.scalers(declared)
    assert served and scalers
    silent = {("kthena-not-served", f"modelserving/{name}") for name in served}
    silent |= {("kthena-not-scaled", f"autoscalingpolicy/{name}") for name in scalers}
    assert named(declared) == set(), "a controller has a minute for its first word"
    assert named(declared, AFTERWARDS) == silent
    for name in served:
        say("modelserving", name, "Available", "True")
    for name in scalers:
        say("autoscalingpolicy", name, "Ready", "True")
    assert named(declared, AFTERWARDS) == set()
    say("autoscalingpolicy", scalers[0], "Ready", "False")
    assert named(declared) == {("kthena-not-scaled", f"autoscalingpolicy/{scalers[0]}")}


def say(kind: str, name: str, condition: str, status: str) -> None:
    """A condition as Kthena's controller writes it."""
    state = {
        "type": condition,
        "status": status,
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = json.dumps({"status": {"conditions": [state]}})
    kubectl("-n", "moonstack", "patch", kind, name, "--subresource=status", "--type=merge", "--patch", patch)
