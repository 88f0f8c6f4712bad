"""Reports kept beside the stack: the latest one, and the latest green one, as ConfigMaps of the namespace."""

import subprocess
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from rules import labels, names
from smoke.cluster import Cluster
from smoke.errors import TemporaryError
from smoke.report import Report

FIELD_MANAGER: Final = "moonstack-smoke"
FILE: Final = "report.json"


async def keep(cluster: Cluster, report: Report) -> None:
    """Store a report as the latest, and as the latest green if it is. Raises SmokeError."""
    for name in [names.SMOKE_LATEST, *([names.SMOKE_GREEN] if report.verdict == "pass" else [])]:
        reply = await cluster.call(
            "PATCH",
            cluster.path("configmaps", name),
            params={"fieldManager": FIELD_MANAGER, "force": "true"},
            body={
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": labels.recommended(name, "smoke", report.stack)},
                "data": {FILE: report.to_json()},
            },
            kind="application/apply-patch+yaml",
        )
        if reply.status not in (200, 201):
            raise TemporaryError(
                f"the report can't be kept: status {reply.status}", "grant patch on ConfigMaps, then run again"
            )


async def latest_green(cluster: Cluster) -> Report | None:
    """The last report of this stack in which nothing failed, or None. Raises SmokeError."""
    return await _read(cluster, names.SMOKE_GREEN)


async def latest(cluster: Cluster) -> Report | None:
    """The last report of this stack, or None. Raises SmokeError."""
    return await _read(cluster, names.SMOKE_LATEST)


async def _read(cluster: Cluster, name: str) -> Report | None:
    config_map = await cluster.get(cluster.path("configmaps", name))
    try:
        return Report.model_validate_json(config_map["data"][FILE]) if config_map else None
    except (KeyError, ValidationError):
        return None


def current_commit(checkout: Path) -> str | None:
    """The checkout's commit, or None outside a git checkout."""
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
