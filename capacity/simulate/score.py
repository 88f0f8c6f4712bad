"""How well forecasts would have done on a load: the method is chosen by score, not by taste."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from capacity.plan.forecast import last_value, same_time_of_day
from capacity.simulate.trace import Trace

METHODS: dict[str, Callable[[Sequence[float], int], float | None]] = {
    "lastValue": last_value,
    "sameTimeOfDay": same_time_of_day,
}


@dataclass(frozen=True, slots=True)
class Score:
    """Mean error in requests a second; shares of minutes under capacity, of load lost, and of capacity unused."""

    method: str
    mean_error: float
    under: float
    lost: float
    spare: float


def score(trace: Trace, ahead: int, margin_percent: float) -> list[Score]:
    """All methods over the last third of a trace, `ahead` minutes ahead, capacity being the forecast with its margin.

    A method that has no forecast there, because the trace is too short for it, is left out.
    """
    load = trace.sampled(60)
    scores = [_score(name, method, load, ahead, margin_percent) for name, method in METHODS.items()]
    return [one for one in scores if one is not None]


def _score(name: str, method: Callable, load: list[float], ahead: int, margin_percent: float) -> Score | None:
    errors, under, lost, capacity_sum, came_sum = [], 0, 0.0, 0.0, 0.0
    for now in range(len(load) * 2 // 3, len(load) - ahead + 1):
        forecast = method(load[:now], ahead)
        if forecast is None:
            continue
        came, capacity = load[now + ahead - 1], forecast * (1 + margin_percent / 100)
        errors.append(abs(forecast - came))
        under += came > capacity
        lost += max(0.0, came - capacity)
        capacity_sum, came_sum = capacity_sum + capacity, came_sum + came
    if not errors:
        return None
    count = len(errors)
    return Score(
        name,
        round(sum(errors) / count, 3),
        round(under / count, 4),
        round(lost / came_sum, 4) if came_sum else 0.0,
        round(1 - came_sum / capacity_sum, 4) if capacity_sum else 0.0,
    )
