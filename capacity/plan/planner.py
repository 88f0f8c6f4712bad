"""One tick for one target: floor, warm pods, deletion cost."""

from dataclasses import replace

from capacity.config import ControllerConfig, Target
from capacity.plan import load, warm
from capacity.plan.model import Action, Engine, Observation, SetCost, SetFloor, TargetState
from rules import floor as floors
from rules.floor import Floor, Pace

COST_PERIOD_SECONDS = 15.0
COST_STEPS = 4
"""Costs are written in quarters of a full pod, so that a pod is patched on a real change only."""


def plan(
    config: ControllerConfig, target: Target, seen: Observation, state: TargetState
) -> tuple[TargetState, list[Action]]:
    """The new state and what to do. Nothing is decided from engines that can't be read."""
    actions: list[Action] = []
    if target.warm is not None:
        state, routes = warm.plan(config, target, seen, state)
        actions += routes
    if target.scaled and seen.hpa is not None:
        state = replace(state, floor=_floor(config, target, seen, state))
        if state.floor is not None and state.floor.replicas != seen.hpa.low:
            actions.append(SetFloor(target.name, state.floor.replicas))
        state, costs = _costs(target, seen, state)
        actions += costs
    return state, actions


def _floor(config: ControllerConfig, target: Target, seen: Observation, state: TargetState) -> Floor:
    assert seen.hpa is not None
    held = state.floor or Floor(replicas=seen.hpa.low, changed=seen.now)
    wanted = max(target.low, seen.scheduled, seen.ratio, state.surge_floor, _predicted(config, target, seen, held))
    pace = Pace(
        up_pods=config.prediction.step_up_pods, down_pods=config.down_pods, down_period_seconds=config.down_period
    )
    high = min(target.high, seen.hpa.high)
    return floors.step(held, wanted, min(target.low, high), high, pace, seen.now)


def _predicted(config: ControllerConfig, target: Target, seen: Observation, held: Floor) -> int:
    if not config.prediction.enabled:
        return 0
    if seen.forecast is None:
        return held.replicas
    return floors.needed(seen.forecast, config.prediction.margin_percent, target.requests_per_pod)


def _costs(target: Target, seen: Observation, state: TargetState) -> tuple[TargetState, list[SetCost]]:
    """Busy pods cost more to delete, written only where fewer pods would do: there the HPA may take some away."""
    total = load.in_flight(seen.serving)
    fewer = total is not None and load.pods_for(total, target.requests_per_pod) < len(seen.serving)
    if not fewer or seen.now - state.costs_at < COST_PERIOD_SECONDS:
        return state, []
    wanted = [(engine.pod, _cost(engine, target)) for engine in seen.serving if engine.pod.ready]
    changed = [SetCost(pod, cost) for pod, cost in wanted if cost != pod.deletion_cost]
    return replace(state, costs_at=seen.now) if changed else state, changed


def _cost(engine: Engine, target: Target) -> int:
    if engine.sample is None:
        return 0
    return min(10 * COST_STEPS, load.pods_for(engine.sample.in_flight * COST_STEPS, target.requests_per_pod))
