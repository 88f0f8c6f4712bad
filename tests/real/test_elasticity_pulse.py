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
from smoke.cluster import Cluster, ready
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
        assert result.times.hpa_decision is not None and result.times.new_instance_serving is not None, result.times
        assert result.verdict == "pass", [one for one in result.criteria if one.verdict == "fail"]
        serving = {"app.kubernetes.io/name": names.engine(MODEL, names.SERVE, pool)}
        await until(
            lambda: _all_ready(cluster, serving, 2)
        )  # two busy engines leave a third little of two cores to load on
        await until(lambda: _all_ready(cluster, serving, 1))
        await until(lambda: resting(cluster, warm))


async def _all_ready(cluster: Cluster, selector: dict[str, str], number: int) -> bool:
    pods = await cluster.pods(selector)
    return len(pods) == number and all(ready(pod) for pod in pods)
