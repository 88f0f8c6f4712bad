"""Puts a run together: cluster, way in, key, probes, report."""

import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rules.digest import short
from settings.content import content_digest, versions
from settings.settings import Settings
from smoke import archive, redact
from smoke.client import GatewayClient
from smoke.cluster import Cluster
from smoke.cost import Paid, run_cost
from smoke.deployed import refuse_other_content
from smoke.engines import Engines
from smoke.errors import SmokeError
from smoke.keys import read_smoke_key
from smoke.probe import LiveStack, Probe
from smoke.probes import (
    authentication,
    boundary,
    compare,
    connectivity,
    fallback,
    golden,
    inside,
    paid,
    prefix,
    quota,
    routing,
    second_replica,
    throughput,
)
from smoke.report import ProbeClass, ProbeResult, Report, verdict_of
from smoke.runner import Listener, run_probes
from smoke.warm import WarmWeek, warm_weeks
from smoke.ways import connection, open_way

log = logging.getLogger(__name__)

ROOT: Final = Path(__file__).parents[1]
"""The checkout, whose commit the report names."""
ENTRANCE: Final = "entrance"
"""Name of the one result of a run that could not begin."""
PROBES: Final = (
    connectivity,
    authentication,
    routing,
    quota,
    inside,
    golden,
    prefix,
    second_replica,
    fallback,
    paid,
    compare,
    throughput,
    boundary,
)


def probes_of(settings: Settings, classes: Collection[ProbeClass]) -> list[Probe]:
    """The probes of these classes that the configuration calls for, in the order in which they run."""
    every = [probe for module in PROBES for probe in module.probes(settings)]
    return [probe for probe in every if probe.kind in classes]


async def run(
    settings: Settings,
    stack: str,
    classes: Collection[ProbeClass] = ("safe",),
    *,
    listener: Listener = lambda *_: None,
) -> Report:
    """Run the probes of these classes on a stack; what keeps them from starting is a failed probe, never an exception."""
    redact.install()
    started, clock = datetime.now(UTC), time.monotonic()
    try:
        async with live_stack(settings, stack) as live:
            if live.engines is not None:
                await refuse_other_content(settings, stack, live.engines.cluster)
            return await examine(live, classes, listener=listener)
    except SmokeError as error:
        entrance = ProbeResult(name=ENTRANCE, kind="safe", verdict="fail", cause=error.cause, fix=error.fix)
        listener(entrance, time.monotonic() - clock)
        return _report(settings, stack, (entrance,), started, time.monotonic() - clock)


async def examine(
    live: LiveStack,
    classes: Collection[ProbeClass] = ("safe",),
    *,
    release: str = "",
    listener: Listener = lambda *_: None,
) -> Report:
    """Run the probes on a live stack that is open already, and keep the report beside it.

    `release` is the digest of what was deployed (else of the configuration); the deadline is `smoke.deadlineSeconds`.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    probes = probes_of(live.settings, classes)
    results, evidence = await run_probes(probes, live, _deadline(live.settings, classes), listener)
    warm = await warm_weeks(live.engines.cluster) if live.engines and live.settings.warm_pool.enabled else ()
    report = _report(
        live.settings, live.name, results, started, time.monotonic() - clock, evidence, release, live.gateway.paid, warm
    )
    if live.engines is not None and "safe" in classes:
        await _keep(live.engines.cluster, report)
    return report


def _report(
    settings: Settings,
    stack: str,
    results: tuple[ProbeResult, ...],
    started: datetime,
    seconds: float,
    evidence: Mapping[str, Any] | None = None,
    release: str = "",
    paid_answers: Iterable[Paid] = (),
    warm_pools: tuple[WarmWeek, ...] = (),
) -> Report:
    return Report(
        verdict=verdict_of(results),
        probes=results,
        stack=stack,
        environment=settings.environment,
        release=release or release_of(settings),
        content=content_digest(settings),
        commit=archive.current_commit(ROOT),
        started=started,
        seconds=round(seconds, 1),
        versions=versions(settings),
        evidence=dict(evidence or {}),
        cost=run_cost(settings, evidence or {}, paid_answers),
        warm_pools=warm_pools,
    )


def _deadline(settings: Settings, classes: Collection[ProbeClass]) -> float:
    config = settings.smoke
    return config.deadline_seconds if set(classes) == {"safe"} else config.long_deadline_seconds


async def last_green(settings: Settings) -> Report | None:
    """The stack's last green report, or None where there is none or the cluster can't be reached."""
    try:
        return await archive.latest_green(await Cluster.connect(settings.cluster))
    except SmokeError:
        return None


async def _keep(cluster: Cluster, report: Report) -> None:
    """A report that can't be kept is a warning: the proof itself stands."""
    try:
        await archive.keep(cluster, report)
    except SmokeError as error:
        log.warning("%s", error)


def release_of(settings: Settings) -> str:
    """Digest of a stack's configuration: what `promote` means by the same release."""
    return short(settings.model_dump(mode="json"))


@asynccontextmanager
async def live_stack(settings: Settings, stack: str) -> AsyncIterator[LiveStack]:
    """The live stack, reachable as long as the context lasts. Raises SmokeError."""
    cluster = await _cluster(settings)
    key = await read_smoke_key(settings, cluster)
    async with open_way(settings, cluster, stack) as address, connection(settings, address) as http:
        engines = Engines(cluster) if cluster else None
        yield LiveStack(name=stack, settings=settings, gateway=GatewayClient(http, key), engines=engines)


async def _cluster(settings: Settings) -> Cluster | None:
    """The cluster, or None where only the endpoint is given and no API server can be reached from here."""
    try:
        return await Cluster.connect(settings.cluster)
    except SmokeError:
        if settings.smoke.via == "endpoint" and settings.environment != "dev":
            return None
        raise
