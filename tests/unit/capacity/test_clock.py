"""Clocks that jump: what acts is judged by a steady clock, so the wall clock alone moves nothing."""

import asyncio
import time

import pytest

from bench.simulated.cluster import FakeCluster
from capacity.act.actor import Actor
from capacity.act.leader import Elector
from capacity.act.memory import Memory, TargetMemory
from capacity.act.review import WEEK_MINUTES
from capacity.config import ControllerConfig, Target
from capacity.controller import Term
from capacity.exposition import EngineSample
from capacity.plan.history import MINUTES_PER_DAY, LoadHistory
from capacity.pods import Pod, PodBook
from capacity.samples import SampleBook
from capacity.telemetry import Telemetry
from rules.warm_pool import RESTING

HPA = "/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/m"
SCALE = "/apis/apps/v1/namespaces/n/deployments/m-warm/scale"
YEAR = 366 * 86_400.0
JUMPS = [YEAR, -YEAR, 7 * 86_400.0, -3600.0, 90.0]


class WallClock:
    """`time.time` with an offset that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset, real = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: real() + self.offset)


class Running:
    """A leader over two busy serving pods and a resting warm one, with a floor of four that its forecast still needs."""

    def __init__(self) -> None:
        self.cluster, self.pods, self.samples = FakeCluster(), PodBook(), SampleBook(60)
        spec = {"minReplicas": 4, "maxReplicas": 10}
        self.cluster.put(HPA, {"metadata": {"name": "m"}, "spec": spec, "status": {"currentReplicas": 4}})
        self.cluster.put(SCALE, {"metadata": {"name": "m-warm"}, "spec": {"replicas": 2}})
        target = Target(
            name="m", model="m", role="decode", selector={"a": "s"}, low=2, high=10, scaled=True, requests_per_pod=12,
            warm="m-warm", warm_selector={"a": "w"}, pool="p", chips=1,
        )  # fmt: skip
        self.memory = Memory(history_days=4)
        self.memory.targets["m"] = TargetMemory(watched=WEEK_MINUTES // 2, used=0)
        telemetry = Telemetry()
        actor = Actor(self.cluster.kube(), "n", telemetry)
        config = ControllerConfig(namespace="n", targets=(target,))
        self.term = Term(config, actor, self.memory, self.pods, self.samples, telemetry)
        self.engines = [Pod(name, name, "127.0.0.1", True, {"a": "s"}) for name in ("s1", "s2", "s3", "s4")]
        self.warm = self.cluster.pod("w1", labels={"a": "w", **RESTING})
        self.pods.replace([*self.engines, Pod("w1", "uid-w1", "127.0.0.1", True, {"a": "w", **RESTING})])

    async def tick(self, waiting: float = 0) -> None:
        for pod in self.engines:
            self.samples.add(pod, EngineSample(waiting, 9.9, 0.2), time.monotonic(), time.time())
        await self.term.tick()


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_wall_clock_that_jumps_there_and_back_moves_no_floor_and_no_pod_and_reviews_nothing(
    jump: float, monkeypatch: pytest.MonkeyPatch
):
    clock, running = WallClock(monkeypatch), Running()
    for offset in (0.0, 0.0, jump, jump, jump + 61, 0.0, 61.0, 122.0):
        clock.offset = offset
        await running.tick()
    assert running.cluster.calls == []
    assert running.memory.target("m").review is None
    await running.tick(waiting=30)
    assert [path for _, path, _ in running.cluster.calls if path == running.warm], "a real burst is still acted on"


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_sample_is_as_fresh_as_it_is_whatever_the_wall_clock_says(jump: float, monkeypatch: pytest.MonkeyPatch):
    clock, running = WallClock(monkeypatch), Running()
    await running.tick()
    clock.offset = jump
    assert [running.samples.fresh(pod, time.monotonic()) is not None for pod in running.engines] == [True] * 4


@pytest.mark.parametrize("jump", JUMPS)
async def test_leadership_is_neither_lost_nor_taken_by_a_jump(jump: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("capacity.act.leader.RENEW_SECONDS", 0.05)
    clock, cluster = WallClock(monkeypatch), FakeCluster()
    first, second = (Elector(cluster.kube(), "n", "lease", name) for name in ("one", "two"))
    tasks = [asyncio.create_task(first.run())]
    await asyncio.sleep(0.2)
    tasks.append(asyncio.create_task(second.run()))
    for offset in (0.0, jump, 0.0):
        clock.offset = offset
        assert first.leading and not second.leading
        for _ in range(10):
            await asyncio.sleep(0.02)
            assert first.leading and not second.leading
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_clock_set_far_back_starts_the_history_over_instead_of_waiting_years():
    history = LoadHistory(days=1)
    for minute in range(1_000_000, 1_000_010):
        history.note(minute, 5.0)
    back = 1_000_000 - 3 * MINUTES_PER_DAY
    for minute in range(back, back + 4):
        history.note(minute, 7.0)
    assert history.last(back + 3) == [7.0, 7.0, 7.0]
    again = LoadHistory.load(LoadHistory(days=1, first=1_000_000, values=[5.0]).dump(), days=1)
    for minute in range(back, back + 4):
        again.note(minute, 7.0)
    assert again.last(back + 3) == [7.0, 7.0, 7.0]
