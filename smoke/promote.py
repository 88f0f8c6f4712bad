"""Whether what one stack has proven may go to the next."""

import subprocess
from datetime import datetime
from pathlib import Path

from settings.settings import Settings
from smoke import archive
from smoke.cluster import Cluster
from smoke.content import content_digest
from smoke.errors import PermanentError
from smoke.report import Report


async def promotable(
    source: Settings, source_stack: str, target: Settings, target_stack: str, checkout: Path
) -> Report:
    """The green report that allows the promotion. Raises PermanentError that says what is missing."""
    cluster = await Cluster.connect(source.cluster)
    green, latest = await archive.latest_green(cluster), await archive.latest(cluster)
    return judge(green, latest, content_digest(target), released(checkout), source_stack, target_stack)


def judge(
    green: Report | None, latest: Report | None, content: str, since: datetime | None, source: str, target: str
) -> Report:
    """The rule itself: green, the last word, not older than the release, and of the same content."""
    again = f"deploy and prove {source} first: pulumi up -s {source} && python -m smoke run -s {source}"
    if green is None:
        raise PermanentError(f"{source} has no green report", again)
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


def released(checkout: Path) -> datetime | None:
    """When the checkout's commit was made, or None outside a git checkout."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "log", "-1", "--format=%cI"],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return datetime.fromisoformat(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None
