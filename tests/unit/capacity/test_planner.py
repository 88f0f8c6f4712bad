"""Planning: warm pods in and out, floors that hold without data, costs before a reduction."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capacity.config import ControllerConfig, Target
from capacity.exposition import EngineSample
from capacity.plan.model import Engine, Hpa, Observation, Route, SetCost, SetFloor, TargetState
from capacity.plan.planner import plan
from capacity.pods import Pod
from rules import warm_pool
from rules.floor import Floor

TARGET = Target(
    name="m-decode-p",
    model="m",
    role="decode",
    selector={"a": "b"},
    low=2,
    high=10,
    scaled=True,
    requests_per_pod=12,
    warm="m-decode-p-warm",
)
CONFIG = ControllerConfig(namespace="n", targets=(TARGET,))


def engine(name: str, waiting: float = 0, running: float = 0, *, active: bool | None = None, cost: int = 0) -> Engine:
    labels = {} if active is None else (warm_pool.ACTIVE if active else warm_pool.RESTING)
    pod = Pod(name, name, "10.0.0.1", ready=True, labels=labels, deletion_cost=cost)
    return Engine(pod, EngineSample(waiting, running, 0.1))


def seen(now: float, serving: list[Engine], warm: list[Engine] | None = None, **more: Any) -> Observation:
    hpa = Hpa(low=2, high=10, current=len(serving), desired=len(serving))
    return Observation(now=now, serving=tuple(serving), warm=tuple(warm or ()), **{"hpa": hpa, **more})


def routes(actions: list) -> list[tuple[str, bool, str]]:
    return [(a.pod.name, a.active, a.reason) for a in actions if isinstance(a, Route)]


BUSY = [engine("s1", 15, 12), engine("s2", 15, 12)]
IDLE = [engine("s1"), engine("s2")]
RESTING = [engine("w1", active=False), engine("w2", active=False)]
ACTIVE = [engine("w1", active=True), engine("w2", active=True)]


def test_a_queue_over_its_target_brings_warm_pods_in_at_once():
    state, actions = plan(CONFIG, TARGET, seen(0, BUSY, RESTING), TargetState())
    assert routes(actions) == [("w1", True, "load"), ("w2", True, "load")]
    assert state.active == 2


def test_activation_raises_the_floor_so_that_the_pool_refills():
    state, actions = plan(CONFIG, TARGET, seen(0, BUSY, RESTING), TargetState())
    assert [a for a in actions if isinstance(a, SetFloor)] == [SetFloor("m-decode-p", 4)]
    assert state.surge_floor == 4


def test_a_queue_below_its_target_brings_nobody_in():
    _, actions = plan(CONFIG, TARGET, seen(0, [engine("s1", 4, 8), engine("s2", 4, 8)], RESTING), TargetState())
    assert routes(actions) == []


def test_decode_is_short_of_batch_before_anything_waits():
    full = [engine("s1", 0, 13), engine("s2", 0, 13)]
    assert routes(plan(CONFIG, TARGET, seen(0, full, RESTING), TargetState())[1]) == [("w1", True, "load")]
    prefill = TARGET.model_copy(update={"role": "prefill"})
    assert routes(plan(CONFIG, prefill, seen(0, full, RESTING), TargetState())[1]) == []


def test_prefill_is_short_when_first_tokens_are_late_and_requests_wait():
    prefill = TARGET.model_copy(update={"role": "prefill"})
    late = [replace(engine("s1", 1, 2), ttft=2.5), engine("s2", 0, 2)]
    assert routes(plan(CONFIG, prefill, seen(0, late, RESTING), TargetState())[1]) == [("w1", True, "load")]
    over = [replace(engine("s1", 0, 2), ttft=2.5), engine("s2", 0, 2)]
    assert routes(plan(CONFIG, prefill, seen(0, over, RESTING), TargetState())[1]) == []


def test_without_fresh_samples_nothing_is_decided():
    blind = [replace(e, sample=None) for e in BUSY]
    state = TargetState(floor=Floor(replicas=5, changed=-1e6), active=2)
    after, actions = plan(
        CONFIG, TARGET, seen(1e6, blind, ACTIVE, hpa=Hpa(low=5, high=10, current=5, desired=5)), state
    )
    assert actions == []
    assert after.floor is not None and after.floor.replicas == 5


def test_calm_pods_go_back_one_at_a_time():
    state, went = TargetState(active=2), []
    warm = list(ACTIVE)
    for second in range(200):
        state, actions = plan(CONFIG, TARGET, seen(second, IDLE, warm), state)
        for name, active, reason in routes(actions):
            assert (active, reason) == (False, "calm")
            went.append((second, name))
            warm = [engine(e.pod.name, active=False) if e.pod.name == name else e for e in warm]
    assert [second for second, _ in went] == [60, 120]
    assert state.active == 0 and state.surge_floor == 0


def test_a_new_queue_interrupts_the_calm():
    state, _ = plan(CONFIG, TARGET, seen(0, IDLE, ACTIVE), TargetState(active=2))
    state, _ = plan(CONFIG, TARGET, seen(59, [engine("s1", 1, 12), engine("s2")], ACTIVE), state)
    _, actions = plan(CONFIG, TARGET, seen(61, IDLE, ACTIVE), state)
    assert routes(actions) == []


def test_pods_stay_in_service_while_the_hpa_still_waits_for_its_own():
    wanting = Hpa(low=2, high=10, current=2, desired=4)
    state = TargetState(active=2)
    for second in range(200):
        state, actions = plan(CONFIG, TARGET, seen(second, IDLE, ACTIVE, hpa=wanting), state)
        assert routes(actions) == []


def test_after_a_roll_lost_activations_are_repeated():
    state, actions = plan(CONFIG, TARGET, seen(0, IDLE, RESTING), TargetState(active=1))
    assert routes(actions) == [("w1", True, "rolled")]
    assert state.active == 1


def test_a_pod_activated_by_hand_is_taken_over():
    state, actions = plan(CONFIG, TARGET, seen(0, IDLE, [ACTIVE[0], RESTING[1]]), TargetState(active=0))
    assert routes(actions) == [] and state.active == 1


def test_the_forecast_raises_the_floor_with_its_margin():
    _, actions = plan(CONFIG, TARGET, seen(0, IDLE, forecast=50.0), TargetState())
    assert SetFloor("m-decode-p", 5) in actions


def test_a_floor_written_by_somebody_else_is_written_again():
    state = TargetState(floor=Floor(replicas=4, changed=0))
    _, actions = plan(CONFIG, TARGET, seen(10, IDLE, forecast=40.0), state)
    assert SetFloor("m-decode-p", 4) in actions


def test_the_other_role_and_the_schedule_raise_the_floor_too():
    for source in ("ratio", "scheduled"):
        _, actions = plan(CONFIG, TARGET, replace(seen(0, IDLE, forecast=0.0), **{source: 6}), TargetState())
        assert SetFloor("m-decode-p", 6) in actions, source


def test_the_gateways_floor_follows_its_requests_a_second():
    gateway = TARGET.model_copy(
        update={"name": "gateway", "role": "serve", "warm": None, "requests_per_pod": 90.0, "high": 256}
    )
    serving = Hpa(low=2, high=256, current=2, desired=2)
    _, actions = plan(CONFIG, gateway, seen(0, IDLE, forecast=1000.0, hpa=serving), TargetState())
    assert SetFloor("gateway", 14) in actions


def test_a_target_without_scaler_is_left_alone():
    fixed = TARGET.model_copy(update={"scaled": False, "warm": None})
    assert plan(CONFIG, fixed, seen(0, BUSY, forecast=500.0), TargetState())[1] == []


def test_busy_pods_cost_more_before_a_reduction_and_idle_ones_are_not_patched():
    pods = [engine("s1", 0, 12), engine("s2"), engine("s3"), engine("s4")]
    state, actions = plan(CONFIG, TARGET, seen(0, pods), TargetState())
    assert [(a.pod.name, a.cost) for a in actions if isinstance(a, SetCost)] == [("s1", 4)]
    _, again = plan(CONFIG, TARGET, seen(1, pods), state)
    assert [a for a in again if isinstance(a, SetCost)] == []


def test_under_full_load_no_cost_is_written():
    _, actions = plan(CONFIG, TARGET, seen(0, [engine("s1", 0, 12), engine("s2", 0, 11)]), TargetState())
    assert [a for a in actions if isinstance(a, SetCost)] == []


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 16), st.floats(0.1, 30), st.booleans(), st.integers(0, 2)),
        max_size=60,
    )
)
def test_whatever_comes_the_plan_stays_within_its_means(course: list[tuple[int, int, float, bool, int]]):
    """Never a pod both ways at once, never more active than there are, never a floor out of bounds."""
    state, now, active = TargetState(), 0.0, {"w1": False, "w2": False}
    for waiting, running, pause, blind, lost in course:
        now += pause
        for name in list(active)[:lost]:
            active[name] = False
        serving = [engine("s1", waiting, running), engine("s2", waiting, running)]
        serving = [replace(e, sample=None) for e in serving] if blind else serving
        warm = [engine(name, active=on) for name, on in active.items()]
        state, actions = plan(CONFIG, TARGET, seen(now, serving, warm), state)
        touched = [a.pod.name for a in actions if isinstance(a, Route)]
        assert len(touched) == len(set(touched))
        for action in actions:
            if isinstance(action, Route):
                assert active[action.pod.name] != action.active
                active[action.pod.name] = action.active
            if isinstance(action, SetFloor):
                assert 2 <= action.replicas <= 10
        assert state.active is not None and 0 <= state.active <= 2
