"""When warm pods step in, and when they go back to the pool."""

from dataclasses import replace

from capacity.config import ControllerConfig, Target
from capacity.plan import load
from capacity.plan.model import Engine, Observation, Route, TargetState
from rules import warm_pool

SETTLE_SECONDS = 5.0


def plan(
    config: ControllerConfig, target: Target, seen: Observation, state: TargetState
) -> tuple[TargetState, list[Route]]:
    """At once in under load, out again one at a time when calm; after a roll the lost activations are repeated."""
    active = [engine for engine in seen.warm if warm_pool.is_active(dict(engine.pod.labels))]
    resting = [engine for engine in seen.warm if engine.pod.ready and engine not in active]
    remembered = len(active) if state.active is None else max(state.active, len(active))
    remembered = min(remembered, len(seen.warm))
    state = replace(state, active=remembered)
    engines = load.routed(seen)
    more = _more(config, target, seen, state, engines) if len(active) == remembered else 0
    wanted = remembered + min(more, len(resting))
    if wanted > len(active) and resting:
        chosen = resting[: wanted - len(active)]
        surge = max(state.surge_floor, len(seen.serving) + wanted)
        state = replace(state, active=wanted, calm_since=None, surge_floor=surge, activated_at=seen.now)
        return state, [Route(target.name, engine.pod, True, "load" if more else "rolled") for engine in chosen]
    return _rest_one(config, target, seen, state, active, engines)


def _more(
    config: ControllerConfig, target: Target, seen: Observation, state: TargetState, engines: list[Engine]
) -> int:
    """How many more pods the load needs at once; a single one is given time to take its share before the next."""
    if not load.overloaded(config, target, engines):
        return 0
    missing = load.pods_for(load.in_flight(engines) or 0.0, target.requests_per_pod) - len(engines)
    if missing > 0:
        return missing
    return 1 if seen.now - state.activated_at >= SETTLE_SECONDS else 0


def _rest_one(
    config: ControllerConfig,
    target: Target,
    seen: Observation,
    state: TargetState,
    active: list[Engine],
    engines: list[Engine],
) -> tuple[TargetState, list[Route]]:
    if not active:
        return replace(state, calm_since=None, surge_floor=state.surge_floor if state.active else 0), []
    if not _fits_without_one(target, seen, engines):
        return replace(state, calm_since=None), []
    since = seen.now if state.calm_since is None else state.calm_since
    if seen.now - since < config.calm_seconds:
        return replace(state, calm_since=since), []
    idlest = min(active, key=lambda engine: engine.sample.in_flight if engine.sample else 0.0)
    left = len(active) - 1
    state = replace(state, active=left, calm_since=seen.now, surge_floor=state.surge_floor if left else 0)
    return state, [Route(target.name, idlest.pod, False, "calm")]


def _fits_without_one(target: Target, seen: Observation, engines: list[Engine]) -> bool:
    """No queue, the load fits one pod fewer, and the serving pods that the HPA wants are all Ready."""
    total = load.in_flight(engines)
    if total is None or any(engine.sample and engine.sample.waiting > 0 for engine in engines):
        return False
    ready = sum(engine.pod.ready for engine in seen.serving)
    enough = ready > 0 and (seen.hpa is None or ready >= seen.hpa.desired)
    return enough and load.pods_for(total, target.requests_per_pod) <= len(engines) - 1
