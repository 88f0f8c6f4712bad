"""A pulse of users on real engines: the HPA adds an engine, the warm pod answers first, and both leave when the users do."""

from collections.abc import Iterator

import pytest

from bench.changed_dev import changed_dev
from bench.engines import answers, cluster_of, resting, until
from bench.small_model import MODEL, scaled
from local.workspace import LOCAL_STACK
from rules import names
from settings.settings import Settings
from smoke import suite
from smoke.cluster import Cluster
from smoke.pulse.result import PulseResult
from smoke.pulse.run import pulse
from tests.real.conftest import DevStack


@pytest.fixture(scope="module")
def small(dev_stack: DevStack) -> Iterator[Settings]:
    with changed_dev(scaled) as settings:
        yield settings


async def test_a_pulse_brings_engines_in_and_out_and_loses_nothing(small: Settings):
    async with suite.live_stack(small, LOCAL_STACK) as live:
        cluster, pool = cluster_of(live), small.node_pools[0].name
        warm = {"app.kubernetes.io/name": names.warm(MODEL, names.SERVE, pool)}
        await until(lambda: resting(cluster, warm))
        (pod,) = await cluster.pods(warm)
        before = await answers(cluster, pod)
        result = await pulse(live, MODEL)
        assert (result.lost, result.broken) == (0, 0), result.criteria
        assert await answers(cluster, pod) > before, "the warm pod answered nothing"
        assert grew(result), result.timeline.replicas
        assert result.times.hpa_decision is not None and result.times.new_instance_serving is not None, result.times
        assert result.verdict == "pass", [one for one in result.criteria if one.verdict == "fail"]
        await until(lambda: resting(cluster, warm))
        await until(lambda: _one_left(cluster, names.engine(MODEL, names.SERVE, pool)))


def grew(result: PulseResult) -> bool:
    """From one engine to three: the warm pod, and the one that the HPA added."""
    replicas = [number for _, number in result.timeline.replicas]
    return replicas[0] == 1 and max(replicas) == 3


async def _one_left(cluster: Cluster, deployment: str) -> bool:
    return len(await cluster.pods({"app.kubernetes.io/name": deployment})) == 1
