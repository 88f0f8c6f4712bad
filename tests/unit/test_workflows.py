"""Workflows give credentials to nobody who shouldn't have them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
OWN_BRANCH = "github.event.pull_request.head.repo.full_name == github.repository"


def workflows() -> dict[str, dict[Any, Any]]:
    return {path.name: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yaml")}


def jobs() -> list[Any]:
    return [
        pytest.param(workflow, job, id=f"{name}:{title}")
        for name, workflow in workflows().items()
        for title, job in workflow["jobs"].items()
    ]


@pytest.mark.parametrize("workflow", workflows().values(), ids=workflows())
def test_a_workflow_starts_with_the_right_to_read_and_never_runs_foreign_code_with_ours(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow[True], "it would give a fork's code our credentials"


@pytest.mark.parametrize(("workflow", "job"), jobs())
def test_forks_get_no_credentials(workflow, job):
    granted = job["permissions"]
    text = yaml.safe_dump(job)
    privileged = "write" in granted.values() or "secrets." in text
    if privileged and "pull_request" in workflow[True]:
        assert OWN_BRANCH in job["if"]
    assert "contents" in granted
    assert granted["contents"] == "read"


@pytest.mark.parametrize(("workflow", "job"), jobs())
def test_a_checkout_keeps_no_token(workflow, job):
    checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize(("workflow", "job"), jobs())
def test_a_job_has_a_time_limit(workflow, job):
    assert job["timeout-minutes"] <= 60


def test_drift_is_told_by_its_exit_code():
    (job,) = workflows()["drift.yaml"]["jobs"].values()
    assert "--expect-no-changes" in job["steps"][-1]["run"]
    assert '"$status" = 7' in job["steps"][-1]["run"]


@pytest.mark.parametrize(("workflow", "job"), jobs())
def test_a_job_that_runs_pulumi_can_build_its_provider(workflow, job):
    """The CLI that a runner installs brings no provider of the pinned version."""
    shell = " ".join(step.get("run", "") for step in job["steps"])
    if "make render" in shell or "make preview" in shell or "local pulumi" in shell:
        used = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        assert {"pulumi/actions", "actions/setup-go", "actions/cache"} <= set(used)


def test_unit_tests_have_the_definitions_without_which_they_fail_in_ci():
    steps = workflows()["pull-request.yaml"]["jobs"]["check"]["steps"]
    shell = [step.get("run", "") for step in steps]
    (tests,) = [at for at, text in enumerate(shell) if "pytest" in text]
    assert any("KTHENA_CRDS=" in text for text in shell[:tests])
