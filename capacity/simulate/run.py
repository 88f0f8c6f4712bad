"""Replays a load against the very planner of the controller and a model of the HPA."""

from collections.abc import Sequence
from dataclasses import dataclass

from capacity.config import ControllerConfig, Target
from capacity.exposition import EngineSample
from capacity.plan.forecast import forecaster
from capacity.plan.history import LoadHistory
from capacity.plan.model import Engine, Hpa, Observation, Route, SetFloor, TargetState
from capacity.plan.planner import plan
from capacity.pods import Pod
from capacity.simulate.engines import EngineModel, PodModel
from capacity.simulate.hpa import HpaModel
from capacity.simulate.trace import Trace
from rules import warm_pool
from rules.metrics import served

LONG_TRACE_SECONDS = 7200


@dataclass(frozen=True, slots=True)
class Point:
    """One moment of a replay; cost in yuan an hour."""

    second: float
    rate: float
    replicas: int
    ready: int
    active_warm: int
    floor: int
    queue: float
    ttft: float
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One target with its engines, its HPA metrics as (name, target), its scaler and what a pod costs an hour."""

    config: ControllerConfig
    target: Target
    pod: PodModel
    metrics: tuple[tuple[str, float], ...]
    hpa: HpaModel
    warm: int
    pod_cost: float
    replicas: int


@dataclass(frozen=True, slots=True)
class Replay:
    """The course of one target, and how far each metric ever got, in shares of its target."""

    target: str
    step: float
    points: tuple[Point, ...]
    peaks: dict[str, float]


def replay(scenario: Scenario, trace: Trace) -> Replay:
    """Run the whole trace. Steps of one second, ten for traces over two hours."""
    step = step_of(trace)
    course = _Course(scenario)
    points = [course.advance(number * step, step, rate) for number, rate in enumerate(trace.sampled(step))]
    return Replay(scenario.target.name, step, tuple(points), course.peaks)


def step_of(trace: Trace) -> float:
    """Seconds of one step of a replay."""
    return 1.0 if trace.seconds <= LONG_TRACE_SECONDS else 10.0


class _Course:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._engines = EngineModel(scenario.pod, scenario.replicas)
        self._state = TargetState()
        self._warm = [False] * scenario.warm
        self._floor = scenario.hpa.low
        self._history = LoadHistory(days=scenario.config.prediction.history_days)
        self._forecast: float | None = None
        self._synced = -1e9
        self.peaks = dict.fromkeys((name for name, _ in scenario.metrics), 0.0)

    def advance(self, now: float, step: float, rate: float) -> Point:
        self._engines.advance(now, step, rate, sum(self._warm))
        self._plan(now)
        self._scale(now)
        active = sum(self._warm)
        engines, pods = self._engines, self._engines.replicas + len(self._warm)
        return Point(
            second=now,
            rate=rate,
            replicas=engines.replicas,
            ready=engines.ready,
            active_warm=active,
            floor=self._floor,
            queue=round(engines.waiting(active), 2),
            ttft=round(engines.ttft(active), 3),
            cost=pods * self._scenario.pod_cost,
        )

    def _plan(self, now: float) -> None:
        scenario, minute = self._scenario, int(now // 60)
        if self._history.note(minute, self._engines.in_system):
            ahead = scenario.config.predict_window_minutes
            self._forecast = forecaster(scenario.config.prediction)(self._history.last(minute), ahead)
        hpa = Hpa(
            low=self._floor, high=scenario.hpa.high, current=self._engines.replicas, desired=self._engines.replicas
        )
        serving = tuple(self._engine(f"s{i}", i < self._engines.ready, None) for i in range(self._engines.replicas))
        warm = tuple(self._engine(f"w{i}", True, on) for i, on in enumerate(self._warm))
        seen = Observation(now=now, serving=serving, warm=warm, hpa=hpa, forecast=self._forecast)
        self._state, actions = plan(scenario.config, scenario.target, seen, self._state)
        for action in actions:
            if isinstance(action, Route):
                self._warm[int(action.pod.name[1:])] = action.active
            elif isinstance(action, SetFloor):
                self._floor = scenario.hpa.low = action.replicas

    def _engine(self, name: str, ready: bool, active: bool | None) -> Engine:
        labels = {} if active is None else (warm_pool.ACTIVE if active else warm_pool.RESTING)
        shares = max(1, self._engines.ready + sum(self._warm))
        helpers = sum(self._warm)
        if not ready or active is False:
            sample = EngineSample(0, 0, 0) if ready else None
        else:
            running = self._engines.running(helpers) / shares
            sample = EngineSample(self._engines.waiting(helpers) / shares, running, running / self._scenario.pod.slots)
        return Engine(Pod(name, name, "", ready, labels), sample, self._engines.ttft(helpers))

    def _scale(self, now: float) -> None:
        hpa = self._scenario.hpa
        if now - self._synced < hpa.sync:
            return
        self._synced = now
        averages = []
        for name, target in self._scenario.metrics:
            value = self._average(name)
            self.peaks[name] = max(self.peaks[name], value / target)
            averages.append((value, target))
        self._engines.scale(now, hpa.decide(now, self._engines.replicas, averages))

    def _average(self, metric: str) -> float:
        """Over the HPA's own pods; ones that still load count as missing: nothing on the way up."""
        helpers = sum(self._warm)
        shares = max(1, self._engines.ready + helpers)
        missing = self._engines.ready / max(1, self._engines.replicas)
        running = self._engines.running(helpers) / shares
        values = {
            served.QUEUE_DEPTH: self._engines.waiting(helpers) / shares,
            served.RUNNING: running,
            served.KV_UTILIZATION: 100 * running / self._scenario.pod.slots,
            served.TTFT: self._engines.ttft(helpers),
        }
        return values[metric] * missing


def over_target_seconds(points: Sequence[Point], step: float, ttft: float) -> float:
    """How long the time to first token stayed above its target."""
    return step * sum(point.ttft > ttft for point in points)
