"""Regressions are named, and promotion is refused without a proof of the same thing."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from settings.content import content_digest
from smoke.compare import regressions
from smoke.cost import RunCost
from smoke.errors import PermanentError
from smoke.promote import judge, refuse_another_program
from smoke.report import Report
from tests.unit.smoke.fakes import dev_settings

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def report(started: datetime = NOW, verdict: str = "pass", **probes: Any) -> Report:
    return Report.model_validate(
        {
            "verdict": verdict,
            "stack": "pre",
            "environment": "pre",
            "release": "r",
            "content": "same",
            "started": started,
            "seconds": 1,
            "probes": [{"name": name, "class": "safe", **values} for name, values in probes.items()],
        }
    )


def dear(yuan: float | None) -> Report:
    cost = {"per_hour": {}, "ttft_objective_seconds": 2, "per_million_tokens": yuan}
    return report().model_copy(update={"cost": RunCost.model_validate(cost)})


def test_a_dearer_token_is_a_regression():
    assert regressions(dear(10), dear(12)) == []
    assert [one.probe for one in regressions(dear(10), dear(12.1))] == ["cost"]
    assert regressions(dear(None), dear(12)) == regressions(dear(10), dear(None)) == []
    assert regressions(report(), dear(12)) == []


def ratio(value: float, verdict: str = "pass") -> dict[str, Any]:
    return {"verdict": verdict, "figure": value, "unit": "warm/cold TTFT", "threshold": 0.25}


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (ratio(0.1), ratio(0.11), False),
        (ratio(0.1), ratio(0.13), True),
        (ratio(0.2), ratio(0.1), False),
        (ratio(0.1), ratio(0.3, "fail"), True),
        (
            {"verdict": "pass", "figure": 10, "unit": "requests/s"},
            {"verdict": "pass", "figure": 7, "unit": "requests/s"},
            True,
        ),
        (
            {"verdict": "pass", "figure": 10, "unit": "requests/s"},
            {"verdict": "pass", "figure": 30, "unit": "requests/s"},
            False,
        ),
        ({"verdict": "fail"}, {"verdict": "fail"}, False),
    ],
)
def test_only_what_got_worse_is_named(before: dict[str, Any], after: dict[str, Any], named: bool):
    assert bool(regressions(report(p=before), report(p=after))) is named


def test_a_probe_that_disappeared_is_named():
    (found,) = regressions(report(p=ratio(0.1)), report(q=ratio(0.1)))
    assert "is not in this run" in found.text


def refusal(
    green: Report | None, latest: Report | None = None, content: str = "same", since: datetime | None = None
) -> str:
    with pytest.raises(PermanentError) as caught:
        judge(green, latest, content, since, "pre", "prod")
    return str(caught.value)


def test_promotion_needs_a_green_report():
    assert "pre has no green report" in refusal(None)


def test_promotion_is_refused_when_the_report_is_of_another_stack():
    assert "is of stack dev" in refusal(report().model_copy(update={"stack": "dev"}))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a program of one component, committed."""
    for name in ("components", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("1\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(checkout: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(checkout: Path) -> str:
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "c")
    return git(checkout, "rev-parse", "HEAD")


def proven(commit: str | None) -> Report:
    return report().model_copy(update={"commit": commit})


def test_the_program_of_the_proof_may_go_on_whatever_its_documents_say(checkout: Path):
    at = git(checkout, "rev-parse", "HEAD")
    (checkout / "docs" / "a").write_text("2\n")
    commit(checkout)
    refuse_another_program(proven(at), checkout, "pre")


@pytest.mark.parametrize("committed", [True, False])
def test_promotion_is_refused_for_a_program_that_was_not_proven(checkout: Path, committed: bool):
    at = git(checkout, "rev-parse", "HEAD")
    (checkout / "components" / "a").write_text("2\n")
    if committed:
        commit(checkout)
    with pytest.raises(PermanentError, match="differs in components/a"):
        refuse_another_program(proven(at), checkout, "pre")


def test_promotion_is_refused_for_a_commit_that_the_checkout_does_not_know(checkout: Path):
    with pytest.raises(PermanentError, match="does not know"):
        refuse_another_program(proven("0" * 40), checkout, "pre")


def test_outside_of_git_the_content_alone_is_judged(tmp_path: Path):
    refuse_another_program(proven("0" * 40), tmp_path, "pre")
    refuse_another_program(proven(None), tmp_path, "pre")


def test_promotion_is_refused_for_other_content():
    assert "prod would deploy other" in refusal(report(), content="other")


def test_promotion_is_refused_when_the_proof_is_older_than_the_release():
    assert "older than the release" in refusal(report(), since=NOW + timedelta(minutes=1))


def test_promotion_is_refused_when_the_last_word_is_red():
    assert "is red" in refusal(report(), report(NOW + timedelta(hours=1), "fail"))


def test_a_fresh_green_report_of_the_same_content_is_promoted():
    green = report()
    assert judge(green, report(NOW - timedelta(hours=1), "fail"), "same", NOW, "pre", "prod") is green


def test_replicas_are_not_content_and_revisions_are():
    settings = dev_settings()
    model = settings.models[0]

    def changed(**update: Any) -> Any:
        return settings.model_copy(update={"models": (model.model_copy(update=update),)})

    role = model.decode[0].model_copy(update={"replicas": 9})
    weights = model.weights.model_copy(update={"revision": "0" * 40})
    assert content_digest(changed(decode=(role,))) == content_digest(settings)
    assert content_digest(changed(weights=weights)) != content_digest(settings)
