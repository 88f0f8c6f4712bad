"""The gate in the real engine, without a cluster: what is proven, when, and what a failure leaves behind."""

import os
import secrets
import subprocess
import textwrap
from pathlib import Path

import pytest

from local import tools

ROOT = Path(__file__).parents[2]

PROGRAM = """
import dataclasses, pathlib, pulumi
from components.context import Context
from components.smoke_gate import SmokeGate, SmokeGateArgs

here = pathlib.Path(__file__).parent

@dataclasses.dataclass(frozen=True)
class Proof:
    passed: bool
    text: str

async def prove(release):
    with (here / "calls").open("a") as calls:
        calls.write(release + "\\n")
    return Proof((here / "verdict").read_text() == "pass", "roll back:  git checkout abc")

config = pulumi.Config()
context = Context(stack="gate", environment="dev", namespace="x", provider=None, images={})
args = SmokeGateArgs(release=config.require("release"), prove=prove, skip=config.get_bool("skip") or False)
gate = SmokeGate("smoke-gate", args, context)
pulumi.export("release", gate.resources.stash.output.apply(lambda stored: stored["release"]))
"""


class Project:
    """A scratch project whose only resource is the gate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "Pulumi.yaml").write_text(
            textwrap.dedent(f"""
                name: gate
                runtime:
                  name: python
                  options: {{toolchain: pip, virtualenv: {ROOT / ".venv"}}}
            """)
        )
        (folder / "__main__.py").write_text(PROGRAM)
        (folder / "backend").mkdir()
        self.environment = {
            **os.environ,
            "PATH": tools.search_path(),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
            "PULUMI_CONFIG_PASSPHRASE": secrets.token_urlsafe(16),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PYTHONPATH": str(ROOT),
        }
        self.environment.pop("PULUMI_OPTION_POLICY_PACK", None)
        assert self.pulumi("stack", "init", "gate").returncode == 0

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(tools.path("pulumi")), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )

    def up(self, verdict: str, release: str, skip: str = "false") -> subprocess.CompletedProcess[str]:
        (self.folder / "verdict").write_text(verdict)
        settings = ("-c", f"release={release}", "-c", f"skip={skip}")
        return self.pulumi("up", "--yes", "--skip-preview", *settings)

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("gate"))


def test_a_failed_proof_fails_the_update_until_it_passes_and_runs_once_a_release(project: Project):
    failed = project.up("fail", "one")
    assert failed.returncode != 0
    assert "roll back:  git checkout abc" in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr

    again = project.up("fail", "one")
    assert again.returncode != 0
    assert project.calls() == ["one", "one"], "a failed proof is tried again on an unchanged stack"

    assert project.up("pass", "one").returncode == 0
    assert project.up("fail", "one").returncode == 0, "nothing changed, so nothing is proven again"
    assert project.calls() == ["one"] * 3

    assert project.up("fail", "two").returncode != 0
    assert project.pulumi("stack", "output", "release").stdout.strip() == "one", "an unproven release is not stored"
    assert project.up("pass", "two").returncode == 0
    assert project.calls() == ["one", "one", "one", "two", "two"]


def test_a_skipped_proof_is_made_up_for_by_the_next_run(project: Project):
    before = len(project.calls())
    assert project.up("fail", "three", skip="true").returncode == 0
    assert len(project.calls()) == before
    assert project.up("fail", "three").returncode != 0
    assert project.up("pass", "three").returncode == 0
    assert project.calls()[before:] == ["three", "three"]


def test_a_preview_proves_nothing(project: Project):
    before = project.calls()
    preview = project.pulumi("preview", "-c", "release=four")
    assert preview.returncode == 0
    assert project.calls() == before
