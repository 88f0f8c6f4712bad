"""The elastic loop on a real control plane: how soon a change is seen, decided on and answered. Engines are simulated, and marked so."""

import json
import random
import statistics
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.output import JsonFile
from bench.simulated.elastic_stack import SERVE, WARM, Elastic, deployed, until
from local.cluster.control_plane import HPA_SYNC_SECONDS
from rules import labels
from smoke.console import write

PATIENCE_SECONDS = 60.0
LIMITS = {
    "metric change → visible, p95": 1.5,
    "metric change → desiredReplicas": HPA_SYNC_SECONDS + 2,
    "decision → answer of the warm pod": 1.0,
    "burst → answer of the warm pod": 3.0,
}


def loop(
    rounds: Annotated[int, typer.Option(min=1, max=50, help="How often each is measured.")] = 5,
    json_file: JsonFile = None,
) -> None:
    """Delays of the loop on the running local cluster, with simulated engines: medians, the worst, and the limits."""
    taken: dict[str, list[float]] = {name: [] for name in LIMITS}
    with deployed() as elastic:
        visible = [_visible(elastic, value) for value in range(1, max(20, rounds) + 1)]
        taken["metric change → visible, p95"] = [statistics.quantiles(visible, n=20)[-1]]
        for _ in range(rounds):
            _calm(elastic)
            answered, decided = _burst(elastic)
            taken["burst → answer of the warm pod"].append(answered)
            taken["decision → answer of the warm pod"].append(answered - decided)
            _calm(elastic)
            taken["metric change → desiredReplicas"].append(_desired(elastic))
        elastic.simulate_all(waiting=0, running=0)
    table = Table("delay", "median s", "worst s", "limit s")
    for name, limit in LIMITS.items():
        table.add_row(name, f"{statistics.median(taken[name]):.2f}", f"{max(taken[name]):.2f}", f"{limit:g}")
    Console().print(table)
    if json_file:
        write(json_file, json.dumps({"schema": 1, "engines": "simulated", "seconds": taken, "limits": LIMITS}))


def _visible(elastic: Elastic, value: int) -> float:
    """Seconds until the API shows what an engine reports; a random pause, else each change falls right behind a scrape."""
    time.sleep(random.uniform(0, 1))
    pod = elastic.engines(SERVE)[0]
    elastic.simulate(pod, waiting=value, running=1)
    return until(lambda: elastic.values()[pod] == value, PATIENCE_SECONDS, "the value at the API")


def _burst(elastic: Elastic) -> tuple[float, float]:
    """Seconds from a burst until the warm pod answers through the router, and until its activation was decided."""
    warm = elastic.engines(WARM)[0]
    started = time.monotonic()
    for pod in elastic.engines(SERVE):
        elastic.simulate(pod, waiting=30, running=12)
    until(lambda: routed(elastic), PATIENCE_SECONDS, "the activation")
    decided = time.monotonic() - started
    until(lambda: elastic.answered_by() == warm, PATIENCE_SECONDS, "an answer of the warm pod")
    return time.monotonic() - started, decided


def _desired(elastic: Elastic) -> float:
    for pod in elastic.engines(SERVE):
        elastic.simulate(pod, waiting=15, running=12)
    until(lambda: min(elastic.values().values()) == 15, PATIENCE_SECONDS, "the value at the API")
    return until(lambda: elastic.hpa["status"]["desiredReplicas"] >= 3, PATIENCE_SECONDS, "the HPA's answer")


def _calm(elastic: Elastic) -> None:
    elastic.simulate_all(waiting=0, running=0, kv=0, hang=0)

    def calm() -> bool:
        low = elastic.hpa["spec"]["minReplicas"] == elastic.hpa["status"].get("desiredReplicas") == 2
        return low and len(elastic.engines(SERVE)) == 2 and not routed(elastic)

    until(calm, 3 * PATIENCE_SECONDS, "calm again")


def routed(elastic: Elastic) -> list[str]:
    """Names of the warm pods that take part."""
    return [pod["metadata"]["name"] for pod in elastic.pods(**{"app.kubernetes.io/name": WARM, labels.ROUTED: "true"})]
