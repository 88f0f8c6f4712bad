"""Whether what one stack has proven may go to the next."""

import subprocess
from datetime import datetime
from pathlib import Path
from typing import Final

from settings.content import content_digest
from settings.settings import Settings
from smoke import archive
from smoke.cluster import Cluster
from smoke.errors import PermanentError
from smoke.report import Report

PROGRAM: Final = (
    "__main__.py",
    "Pulumi.yaml",
    "capacity",
    "components",
    "images",
    "requirements.txt",
    "rules",
    "settings",
)
"""What a deployment is made of besides its stack file; the gate's own code judges and is no part of it."""


async def promotable(
    source: Settings, source_stack: str, target: Settings, target_stack: str, checkout: Path
) -> Report:
    """The green report that allows the promotion. Raises PermanentError that says what is missing."""
    cluster = await Cluster.connect(source.cluster)
    green, latest = await archive.latest_green(cluster), await archive.latest(cluster)
    allowed = judge(green, latest, content_digest(target), released(checkout), source_stack, target_stack)
    refuse_another_program(allowed, checkout, source_stack)
    return allowed


def judge(
    green: Report | None, latest: Report | None, content: str, since: datetime | None, source: str, target: str
) -> Report:
    """The rule itself: green, the last word, not older than the release, and of the same content."""
    again = f"deploy and prove {source} first: pulumi up -s {source} && python -m smoke run -s {source}"
    if green is None:
        raise PermanentError(f"{source} has no green report", again)
    if green.stack != source:
        raise PermanentError(
            f"the green report in the namespace of {source} is of stack {green.stack}",
            f"make cluster.context and cluster.namespace of Pulumi.{source}.yaml name the stack's own cluster",
        )
    if latest and latest.verdict == "fail" and latest.started > green.started:
        raise PermanentError(f"the last report of {source}, of {latest.started:%Y-%m-%d %H:%M}, is red", again)
    if since and green.started < since:
        raise PermanentError(
            f"the green report of {source} ({green.started:%Y-%m-%d %H:%M}) is older than the release ({since:%Y-%m-%d %H:%M})",
            again,
        )
    if green.content != content:
        raise PermanentError(
            f"{source} has proven content {green.content}, and {target} would deploy {content}: "
            "images, model revisions or engine settings differ",
            f"make the stack files of {source} and {target} agree, then prove {source} again",
        )
    return green


def refuse_another_program(green: Report, checkout: Path, source: str) -> None:
    """Raises PermanentError where the checkout would deploy by other code than the proof's commit; also by changes not committed."""
    if not green.commit or released(checkout) is None:
        return
    differs = _git(checkout, "diff", "--name-only", green.commit, "--", *PROGRAM)
    if differs is None:
        raise PermanentError(
            f"{source} was proven at commit {green.commit[:12]}, which this checkout does not know",
            "git fetch, or check out what was proven",
        )
    if changed := differs.split():
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise PermanentError(
            f"{source} was proven at commit {green.commit[:12]}, and this checkout differs in {', '.join(changed[:3])}{more}",
            f"check out {green.commit[:12]}, or commit the changes and prove {source} again",
        )


def released(checkout: Path) -> datetime | None:
    """When the checkout's commit was made, or None outside a git checkout."""
    said = _git(checkout, "log", "-1", "--format=%cI")
    return datetime.fromisoformat(said) if said else None


def _git(checkout: Path, *arguments: str) -> str | None:
    """What git says, or None where it fails or is not there."""
    command = ["git", "-C", str(checkout), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
