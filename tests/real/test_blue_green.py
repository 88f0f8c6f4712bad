"""A model that changes as a whole, in the real engine: what is made, moved and deleted, in which order. No cluster is asked."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import tools
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import stack

ROOT = Path(__file__).parents[2]
SERVICE = "Service::small-router"

PROGRAM = """
import json
import os
import sys
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

sys.path.insert(0, os.environ["CHECKOUT"])

from components.context import Context
from components.release import release_digest
from components.serving import serve
from components.serving_plan import engine_plans
from components.smoke_gate import SmokeGate, SmokeGateArgs
from settings.settings import Settings


@dataclass
class Proof:
    passed: bool
    text: str


async def prove(release):
    return Proof(os.environ["PROVEN"] == "yes", "as the test wants it")


with open("stack.json") as file:
    values = json.load(file)
with open("images.json") as file:
    images = json.load(file)
settings = Settings.from_mapping(values)
provider = kubernetes.Provider("cluster", cluster_identifier="test", render_yaml_to_directory="rendered")
context = Context(stack="test", environment="pre", namespace="serving", provider=provider, images=images)
plans = engine_plans(settings, images, None, "test")
model = serve(next(each for each in settings.models if each.name == "small"), plans, settings, context)
SmokeGate("smoke", SmokeGateArgs(release=release_digest(context), prove=prove, after=[model]), context)
"""


class Stack:
    """A throw-away stack in a folder of its own, run by the real engine on a provider that writes files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        project = {"name": "moonstack", "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}}}
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        (folder / "__main__.py").write_text(PROGRAM)
        self._pulumi("stack", "init", "test", "--secrets-provider", "passphrase")

    def up(self, values: dict[str, Any], proven: bool = True) -> list[str]:
        """The steps of one update, `<op> <kind>::<name>` in the order of their ends; the gate decides whether it succeeds."""
        events = self.folder / "events"
        events.unlink(missing_ok=True)
        (self.folder / "stack.json").write_text(json.dumps(values))
        (self.folder / "images.json").write_text(json.dumps(IMAGES))
        more = ("--yes", "--skip-preview", "--non-interactive", "--stack", "test", "--event-log", str(events))
        done = self._pulumi("up", *more, check=False, PROVEN="yes" if proven else "no")
        assert (done.returncode == 0) == proven, done.stdout + done.stderr
        found = [json.loads(line).get("resOutputsEvent") for line in events.read_text().splitlines()]
        return [f"{each['metadata']['op']} {_short(each['metadata']['urn'])}" for each in found if each]

    def objects(self) -> dict[str, dict[str, Any]]:
        """`<kind>::<name>` of everything in the state → its inputs."""
        return {_short(each["urn"]): each.get("inputs", {}) for each in self._state()}

    def needs(self, name: str) -> set[str]:
        """`<kind>::<name>` of everything that an object was made after, and goes before."""
        [found] = [each for each in self._state() if _short(each["urn"]) == name]
        return {_short(urn) for urn in found.get("dependencies", ())}

    def waits_and_grace(self, name: str) -> tuple[float, float]:
        """How long Pulumi waits for a Deployment to be deleted, and how long its pods may take; in seconds."""
        [found] = [each for each in self._state() if _short(each["urn"]) == name]
        return found["customTimeouts"]["delete"], found["inputs"]["spec"]["template"]["spec"][
            "terminationGracePeriodSeconds"
        ]

    def _state(self) -> list[dict[str, Any]]:
        exported = json.loads(self._pulumi("stack", "export", "--stack", "test").stdout)
        return exported["deployment"]["resources"]

    def _pulumi(self, *arguments: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": tools.search_path(),
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder}",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DEBUG_COMMANDS": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "CHECKOUT": str(ROOT),
            **more,
        }
        return subprocess.run(
            [str(tools.path("pulumi")), *arguments],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600, check=check,
        )  # fmt: skip


def _short(urn: str) -> str:
    """`urn:pulumi:test::moonstack::a$kubernetes:apps/v1:Deployment::name` → `Deployment::name`."""
    _, _, kind, name = urn.split("::")
    return f"{kind.rpartition(':')[2]}::{name}"


@pytest.fixture
def deployed(tmp_path: Path) -> Stack:
    tools.ensure()
    return Stack(tmp_path)


def revision(digit: str) -> dict[str, Any]:
    values = stack()
    values["models"][1] |= {
        "rollout": "blueGreen",
        "weights": values["models"][1]["weights"] | {"revision": digit * 16},
    }
    return values


def deployments(objects: dict[str, Any], role: str) -> list[str]:
    return [name for name in objects if name.startswith(f"Deployment::small-{role}")]


def selected(objects: dict[str, dict[str, Any]]) -> str:
    return objects[SERVICE]["spec"]["selector"]["moonstack.dev/set"]


def place(steps: list[str], wanted: Callable[[str], bool]) -> list[int]:
    found = [position for position, step in enumerate(steps) if wanted(step)]
    assert found, steps
    return found


def test_a_new_set_is_made_first_then_the_service_moves_and_the_old_set_goes_routers_first(deployed: Stack):
    deployed.up(revision("a"))
    old = selected(deployed.objects())
    behind = {f"Deployment::small-{role}-gpu-{old}" for role in ("prefill", "decode")}
    assert behind <= deployed.needs(f"Deployment::small-router-{old}"), "old engines serve until their routers are gone"
    for name in (*behind, f"Deployment::small-router-{old}"):
        waits, grace = deployed.waits_and_grace(name)
        assert waits > grace, f"{name} would be given up while its pods still drain"
    steps = deployed.up(revision("b"))
    after = deployed.objects()
    new = selected(after)
    assert new != old
    made = place(steps, lambda step: step.startswith("create Deployment") and step.endswith(new))
    [moved] = place(steps, lambda step: step == f"update {SERVICE}")
    [proven] = place(steps, lambda step: step == "update Stash::smoke")
    [router] = place(steps, lambda step: step == f"delete Deployment::small-router-{old}")
    engines = place(
        steps, lambda step: step.startswith("delete Deployment::small-") and "router" not in step and step.endswith(old)
    )
    assert (len(made), len(engines)) == (3, 2), steps
    assert max(made) < moved < proven < router < min(engines), steps
    assert [len(deployments(after, role)) for role in ("prefill", "decode", "router")] == [1, 1, 1]


def test_a_set_that_is_not_proven_leaves_the_old_one_and_the_way_back_makes_nothing(deployed: Stack):
    deployed.up(revision("a"))
    old = selected(deployed.objects())
    steps = deployed.up(revision("b"), proven=False)
    assert not [step for step in steps if step.startswith("delete")], steps
    both = deployed.objects()
    assert selected(both) != old
    assert [len(deployments(both, role)) for role in ("prefill", "decode", "router")] == [2, 2, 2]
    back = deployed.up(revision("a"))
    assert not [step for step in back if step.startswith("create")], back
    assert selected(deployed.objects()) == old
    assert [len(deployments(deployed.objects(), role)) for role in ("prefill", "decode", "router")] == [1, 1, 1]


def test_another_number_of_engines_stays_in_its_set(deployed: Stack):
    deployed.up(revision("a"))
    values = revision("a")
    values["models"][1]["decode"]["replicas"] = 2
    steps = deployed.up(values)
    assert not [step for step in steps if step.split()[0] in ("create", "delete")], steps


def test_a_model_begins_and_ends_to_change_as_a_whole_without_a_gap(deployed: Stack):
    plain, whole = revision("a"), revision("a")
    del plain["models"][1]["rollout"]
    deployed.up(plain)
    for values, ready_first in ((whole, True), (plain, False)):
        steps = deployed.up(values)
        made = place(steps, lambda step: step.startswith("create Deployment"))
        gone = place(steps, lambda step: step.startswith("delete Deployment"))
        [moved] = place(steps, lambda step: step == f"update {SERVICE}")
        assert max(*made, moved) < min(gone), steps
        assert not ready_first or max(made) < moved, steps
