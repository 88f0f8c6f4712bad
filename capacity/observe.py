"""From pods, samples and memory to what the planner looks at."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from capacity.act.memory import Memory
from capacity.config import ControllerConfig, Target
from capacity.plan import load
from capacity.plan.forecast import forecaster
from capacity.plan.model import Engine, Hpa, Observation
from capacity.plan.windows import scheduled_floor
from capacity.pods import PodBook
from capacity.samples import SampleBook
from capacity.telemetry import Telemetry
from rules.metrics import served
from rules.scaling import ratio_floor


class Observer:
    """Looks at every target, and keeps its load history as it goes."""

    def __init__(
        self, config: ControllerConfig, pods: PodBook, samples: SampleBook, memory: Memory, telemetry: Telemetry
    ) -> None:
        self._config, self._pods, self._samples = config, pods, samples
        self._memory, self._telemetry = memory, telemetry
        self._forecast = forecaster(config.prediction)
        self._forecasts: dict[str, dict[int, float]] = {}
        self._latest: dict[str, float | None] = {}

    def look(self, target: Target, hpas: Mapping[str, Hpa | None]) -> Observation:
        """The target as it is now."""
        now = time.monotonic()
        seen = Observation(
            now=now,
            serving=self._engines(target.selector, now),
            warm=self._engines(target.warm_selector, now) if target.warm else (),
            hpa=hpas.get(target.name),
            forecast=self._latest.get(target.name),
            scheduled=scheduled_floor(target.windows, datetime.now(UTC), self._config.predict_window_minutes),
            ratio=self._ratio(target, hpas),
        )
        self._count(target, seen)
        return seen

    def note_load(self, target: Target, seen: Observation, minute: int) -> bool:
        """Add the load to the minute; True when a minute has closed and the forecast is new."""
        total = load.in_flight(load.routed(seen))
        if total is not None:
            self._telemetry.load.labels(target.name).set(total)
        history = self._memory.history(target.name)
        if not history.note(minute, total):
            return False
        ahead = self._config.predict_window_minutes
        forecast = self._forecast(history.last(minute), ahead)
        self._latest[target.name] = forecast
        self._score(target.name, history.last(minute)[-1:], minute - 1)
        if forecast is not None:
            self._telemetry.forecast.labels(target.name).set(forecast)
            self._forecasts.setdefault(target.name, {})[minute - 1 + ahead] = forecast
        return True

    def _score(self, target: str, came: list[float | None], minute: int) -> None:
        made = self._forecasts.setdefault(target, {})
        expected = made.pop(minute, None)
        for old in [at for at in made if at < minute]:
            del made[old]
        if expected is not None and came and came[0] is not None:
            self._telemetry.forecast_error.labels(target).set(expected - came[0])

    def _engines(self, selector: Mapping[str, str], now: float) -> tuple[Engine, ...]:
        engines = []
        for pod in self._pods.matching(selector):
            sample = self._samples.fresh(pod, now)
            ttft = self._samples.value(pod, served.TTFT, now) if sample else None
            engines.append(Engine(pod, sample, ttft.value if ttft else 0.0))
        return tuple(engines)

    def _ratio(self, target: Target, hpas: Mapping[str, Hpa | None]) -> int:
        """What the model's other role asks for, less what this role has on its other pools."""
        if target.per_other is None:
            return 0
        same_model = [other for other in self._config.targets if other.model == target.model and other != target]
        current = {t.name: hpa.current for t in same_model if (hpa := hpas.get(t.name)) is not None}
        others = sum(current.get(t.name, 0) for t in same_model if t.role != target.role)
        siblings = sum(current.get(t.name, 0) for t in same_model if t.role == target.role)
        return ratio_floor(others, target.per_other) - siblings

    def _count(self, target: Target, seen: Observation) -> None:
        pods = self._telemetry.pods
        serving = [engine for engine in seen.serving if engine.pod.ready]
        pods.labels(target.name, "ready").set(len(serving))
        pods.labels(target.name, "without_sample").set(sum(engine.sample is None for engine in serving))
        pods.labels(target.name, "routed").set(len(load.routed(seen)))
        pods.labels(target.name, "warm").set(sum(engine.pod.ready for engine in seen.warm))
