"""A rehearsal: the stack, applied by the real engine to the real API server, placed by the real scheduler on simulated nodes."""

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from local import cluster
from local.cluster.api import Api
from local.cluster.layout import layout
from local.errors import LocalError
from local.progress import Progress
from local.rehearse.cluster import remove_namespace, stage
from local.rehearse.engine_run import EngineRun
from local.rehearse.nodes import simulated_pools
from local.rehearse.overrides import WHY, overrides
from local.rehearse.players import Players
from local.rehearse.render import OFFLINE
from local.rehearse.report import Report, pool_reports, unplaced
from local.workspace import Workspace, offline, stack_config
from settings.settings import NAMESPACE as CONFIG
from settings.settings import Settings
from settings.upgrade import rollouts, told

LIMIT_SECONDS = 600.0


def rehearse(stack: str, progress: Progress, instead: Mapping[str, Any] | None = None) -> Report:
    """Apply the stack, wait until every pod has a node or can't have one, report, and remove all of it.

    `instead` replaces groups of the stack's configuration: what if a pool had fewer nodes? Raises LocalError, SettingsError.
    """
    prefix = f"{CONFIG}:"
    own = {key.removeprefix(prefix): value for key, value in stack_config(stack).items() if key.startswith(prefix)}
    groups = {**own, **(instead or {})}
    changed = {**(instead or {}), **overrides(Settings.from_mapping(groups, f"Pulumi.{stack}.yaml"), groups)}
    for group, why in WHY.items():
        progress.say(f"  rehearsal: {group}: {why}")
    rehearsed = Settings.from_mapping(
        {**groups, **changed, "keys": {**groups.get("keys", {}), "source": "placeholder"}}
    )
    with progress.phase("local cluster with simulated nodes"):
        cluster.up(Progress(Console(quiet=True)), ("kwok",))
    api = cluster.connect(layout())
    started = time.monotonic()
    try:
        remove_namespace(api)
        with (
            stage(api, simulated_pools(rehearsed), rehearsed),
            offline(stack, changed, OFFLINE) as here,
        ):
            return _play(stack, rehearsed, here, api, progress, started)
    finally:
        api.close()


def _play(stack: str, settings: Settings, here: Workspace, api: Api, progress: Progress, started: float) -> Report:
    run = EngineRun(here)
    players = Players(api, settings)
    try:
        with progress.phase("pulumi up on simulated nodes", lambda: players.say(api)):
            while run.alive() and not players.stuck(api):
                players.act()
                if time.monotonic() - started > LIMIT_SECONDS:
                    raise LocalError(
                        f"the rehearsal did not end in {LIMIT_SECONDS:.0f} s; the last pods: {players.say(api)}"
                    )
                time.sleep(1)
        players.act()
        pods = players.settle()
        failed = unplaced(settings, pods)
        if run.ended_badly() and not failed:
            raise LocalError(f"pulumi up failed in the rehearsal: {run.last_lines()}")
        return Report(
            stack=stack,
            seconds=round(time.monotonic() - started, 1),
            pods=len(pods),
            placed=sum(1 for pod in pods if pod["spec"].get("nodeName")),
            expanded=players.expanded,
            pools=pool_reports(settings, pods),
            unplaced=failed,
            rollouts={model: told(way) for model, way in rollouts(settings).items()},
        )
    finally:
        run.stop()
        with progress.phase("remove the rehearsal"):
            run.destroy()
