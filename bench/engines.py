"""Elasticity with real engines: what a second pod is worth, and how soon a warm pod answers through gateway and router."""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.changed_dev import changed_dev
from bench.output import JsonFile
from bench.small_model import HIGH_USERS, MODEL, scaled, small_model
from local.workspace import LOCAL_STACK
from rules import labels, names
from settings.settings import Settings
from smoke import suite
from smoke.cluster import Cluster, ready
from smoke.console import write
from smoke.drills.hands import Hands
from smoke.engines import Engine, Engines
from smoke.load import Load, Request
from smoke.probe import LiveStack

ANSWERS = "vllm:time_to_first_token_seconds_count"
PATIENCE_SECONDS = 240.0
TOKENS = 32


def engines(
    seconds: Annotated[float, typer.Option(min=5, max=120, help="How long each load lasts.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, max=10, help="Bursts.")] = 3,
    json_file: JsonFile = None,
) -> None:
    """On the running dev stack: a small model is deployed beside it, measured, and taken away."""
    with changed_dev(small_model) as settings:
        rates = asyncio.run(with_pods(settings, (1, 2), seconds))
    with changed_dev(scaled) as settings:
        bursts = [asyncio.run(burst(settings)) for _ in range(rounds)]
    table = Table("measure", "median", "worst", "limit")
    table.add_row("tokens a second of one pod", f"{rates[0]:.1f}", "", "")
    table.add_row("two pods over one", f"{rates[1] / rates[0]:.2f}", "", "≥ 1.5")
    for name, limit in (("burst to answer", "3 s"), ("decision to answer", "1 s"), ("cold pod over warm pod", "≥ 15")):
        figures = [one[name] for one in bursts]
        worst = min(figures) if name.startswith("cold") else max(figures)
        table.add_row(name, f"{statistics.median(figures):.2f}", f"{worst:.2f}", limit)
    Console().print(table)
    if json_file:
        write(json_file, json.dumps({"schema": 1, "tokens_per_second": rates, "bursts": bursts}))


async def with_pods(settings: Settings, counts: tuple[int, ...], seconds: float) -> list[float]:
    """Tokens a second with so many pods, under as many users as the pulse has at its height."""
    rates = []
    async with suite.live_stack(settings, LOCAL_STACK) as live:
        hands = Hands(cluster_of(live))
        for count in counts:
            await hands.scale(await hands.engines(MODEL, names.SERVE), count)
            await asyncio.sleep(5)  # the router looks for new pods
            load = Load(live.gateway, Request(model=MODEL, prompt_words=20, max_tokens=TOKENS))
            await load.closed(lambda _: HIGH_USERS, seconds)
            rates.append(sum(one.outcome == "ok" for one in load.samples) * TOKENS / load.now)
    return rates


async def burst(settings: Settings) -> dict[str, float]:
    """From two users to twelve: seconds until the warm pod's first token, from the burst and from its activation."""
    async with suite.live_stack(settings, LOCAL_STACK) as live:
        cluster = cluster_of(live)
        selector = {"app.kubernetes.io/name": names.warm(MODEL, names.SERVE, settings.node_pools[0].name)}
        await until(lambda: resting(cluster, selector))
        (warm,) = await cluster.pods(selector)
        name, before = warm["metadata"]["name"], await answers(cluster, warm)
        load = Load(live.gateway, Request(model=MODEL, prompt_words=20, max_tokens=TOKENS))
        done = asyncio.Event()
        users = asyncio.create_task(load.closed_until(HIGH_USERS, done.wait()))
        started = time.monotonic()
        try:
            await until(lambda: _routed(cluster, name))
            decided = time.monotonic()
            await until(lambda: _more(cluster, warm, before))
            answered = time.monotonic()
        finally:
            done.set()
            await users
        return {
            "burst to answer": answered - started,
            "decision to answer": answered - decided,
            "cold pod over warm pod": cold_start_seconds(warm) / (answered - decided),
        }


def cluster_of(live: LiveStack) -> Cluster:
    """The cluster of a stack that is watched from inside."""
    assert live.engines is not None, "dev always has its cluster"
    return live.engines.cluster


async def answers(cluster: Cluster, pod: dict[str, Any]) -> float:
    """How many answers an engine has begun."""
    engine = Engine(pod["metadata"]["name"], names.SERVE)
    return (await Engines(cluster).counters([engine]))[engine.pod].get(ANSWERS, 0.0)


def cold_start_seconds(pod: dict[str, Any]) -> float:
    """From a pod's creation until it was Ready."""
    became = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")["lastTransitionTime"]
    return (
        datetime.fromisoformat(became) - datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    ).total_seconds()


async def resting(cluster: Cluster, selector: dict[str, str]) -> bool:
    """Whether the one warm pod is loaded and out of the routers' sight."""
    pods = await cluster.pods(selector)
    return len(pods) == 1 and all(ready(pod) and pod["metadata"]["labels"][labels.ROUTED] == "false" for pod in pods)


async def _routed(cluster: Cluster, name: str) -> bool:
    pod = await cluster.get(cluster.path("pods", name))
    return pod is not None and pod["metadata"]["labels"].get(labels.ROUTED) == "true"


async def _more(cluster: Cluster, pod: dict[str, Any], before: float) -> bool:
    return await answers(cluster, pod) > before


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await done():
            await asyncio.sleep(0.05)
