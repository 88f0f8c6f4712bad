"""The weekly review: a week that was watched, bounds, and chips that several models share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulated.cluster import FakeCluster
from capacity.act import memory as memories
from capacity.act.actor import Actor
from capacity.act.memory import Memory, TargetMemory
from capacity.act.review import WEEK_MINUTES, WarmReview
from capacity.config import ControllerConfig, Target
from capacity.telemetry import Telemetry
from rules.warm_share import Claim, most_pods, shared

CLAIMS = st.lists(
    st.builds(
        lambda chips, low, more, used: (chips, low, low + more, used),
        st.integers(1, 8),
        st.integers(1, 3),
        st.integers(0, 5),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=5,
).map(
    lambda rows: [
        Claim(name=f"m{n}", chips=chips, low=low, wanted=wanted, activations=used)
        for n, (chips, low, wanted, used) in enumerate(rows)
    ]
)


@given(CLAIMS, st.integers(0, 200))
def test_whoever_shares_nobody_falls_below_its_minimum_and_together_they_keep_to_the_budget(
    claims: list[Claim], budget: int
):
    given_ = shared(claims, budget)
    least = sum(c.chips * c.low for c in claims)
    assert all(c.low <= given_[c.name] <= c.wanted for c in claims)
    held = sum(c.chips * given_[c.name] for c in claims)
    assert held <= max(budget, least)
    assert not [c for c in claims if given_[c.name] < c.wanted and held + c.chips <= budget], "no room is left unused"
    assert shared(claims, budget) == given_


@given(CLAIMS, st.integers(0, 200))
def test_of_equally_large_pods_none_is_given_while_another_needs_it_more(claims: list[Claim], budget: int):
    same = [Claim(name=c.name, chips=2, low=c.low, wanted=c.wanted, activations=c.activations) for c in claims]
    given_ = shared(same, budget)
    for short in (c for c in same if given_[c.name] < c.wanted):
        for other in (c for c in same if given_[c.name] > c.low):
            assert other.activations / given_[other.name] >= short.activations / (given_[short.name] + 1)


@given(CLAIMS, st.integers(0, 200))
def test_what_the_arithmetic_reserves_covers_whatever_a_review_decides(claims: list[Claim], budget: int):
    reserved, decided = most_pods(claims, budget), shared(claims, budget)
    chips = {c.name: c.chips for c in claims}
    assert sum(chips[n] * pods for n, pods in decided.items()) <= max(budget, sum(c.chips * c.low for c in claims))
    assert all(c.low <= reserved[c.name] <= c.wanted for c in claims)
    if len(set(chips.values())) == 1:
        assert sum(reserved.values()) == sum(decided.values())


def test_of_equals_the_model_declared_first_is_served_first():
    claims = [Claim(name=n, chips=1, low=1, wanted=3, activations=9) for n in ("second", "first")]
    assert shared(claims, 3) == {"second": 2, "first": 1}
    assert shared(claims, 4) == {"second": 2, "first": 2}


def test_without_a_budget_everybody_has_what_it_asks_for():
    assert shared([Claim(name="m", chips=8, low=1, wanted=4)], None) == {"m": 4}


class World:
    """A controller's review over warm pools of the given sizes, all on one node pool, two chips a pod."""

    def __init__(self, sizes: dict[str, int], budget: int | None = None, **config: Any) -> None:
        self.cluster, self.memory = FakeCluster(), Memory(history_days=4)
        for name, size in sizes.items():
            self.cluster.put(self.path(name), {"metadata": {"name": f"{name}-warm"}, "spec": {"replicas": size}})
        targets = tuple(
            Target(
                name=name, model=name, role="serve", selector={"a": name}, low=1, high=4, scaled=False,
                requests_per_pod=1, warm=f"{name}-warm", warm_selector={"a": "w"}, pool="p", chips=2,
            )
            for name in sizes
        )  # fmt: skip
        self.config = ControllerConfig(namespace="n", targets=targets, warm_chips=budget, **config)
        self.telemetry = Telemetry()
        self.review = WarmReview(
            self.config, Actor(self.cluster.kube(), "n", self.telemetry), self.memory, self.telemetry
        )

    @staticmethod
    def path(name: str) -> str:
        return f"/apis/apps/v1/namespaces/n/deployments/{name}-warm/scale"

    def week(self, name: str, used: int, short_by: int = 0, active: int = 0) -> "World":
        """As if so many activations had come within the week, of which some minutes are missing."""
        self.memory.targets[name] = TargetMemory(watched=WEEK_MINUTES - 1 - short_by, used=used, active=active)
        return self

    async def sizes(self) -> dict[str, int]:
        """After one more minute."""
        await self.review.minute()
        return {t.name: self.cluster.objects[self.path(t.name)]["spec"]["replicas"] for t in self.config.targets}


async def test_a_pool_that_was_hardly_used_shrinks_after_a_week_and_not_before():
    assert await World({"m": 2}).week("m", used=1).sizes() == {"m": 1}
    assert await World({"m": 2}).week("m", used=1, short_by=1).sizes() == {"m": 2}


@pytest.mark.parametrize(("used", "size"), [(5, 2), (15, 3)])
async def test_a_pool_that_was_used_stays_or_grows(used: int, size: int):
    assert await World({"m": 2}).week("m", used=used).sizes() == {"m": size}


async def test_a_review_looks_at_its_own_week_alone_and_is_remembered():
    world = World({"m": 2}).week("m", used=20)
    assert await world.sizes() == {"m": 3}
    kept = world.memory.target("m")
    assert kept.review is not None and (kept.watched, kept.used) == (0, 0)
    assert (kept.review.activations, kept.review.before, kept.review.asked, kept.review.after) == (20, 2, 3, 3)
    kept.watched = WEEK_MINUTES - 1
    assert await world.sizes() == {"m": 1}, "the next week had no activation"


async def test_the_week_goes_on_after_a_restart():
    world = World({"m": 2}).week("m", used=1, short_by=1)
    world.cluster.put(memories.path("n"), {"metadata": {"name": "state"}})
    await world.sizes()
    await memories.save(world.cluster.kube(), "n", world.memory)
    again = World({"m": 2})
    again.memory.targets = (await memories.load(world.cluster.kube(), "n", history_days=4)).targets
    assert await again.sizes() == {"m": 1}


async def test_two_models_share_the_chips_and_the_one_that_was_needed_more_grows():
    world = World({"a": 1, "b": 1}, budget=6).week("a", used=8).week("b", used=30)
    assert await world.sizes() == {"a": 1, "b": 2}
    review = world.memory.target("a").review
    assert review is not None and (review.asked, review.after) == (2, 1)


async def test_weeks_that_end_within_the_same_hour_are_reviewed_together():
    world = World({"a": 1, "b": 1}, budget=6).week("a", used=8).week("b", used=30, short_by=20)
    assert await world.sizes() == {"a": 1, "b": 2}


async def test_a_model_that_came_later_keeps_its_pods_and_its_week():
    world = World({"a": 1, "b": 2}, budget=6).week("a", used=30).week("b", used=0, short_by=5000)
    assert await world.sizes() == {"a": 1, "b": 2}
    assert world.memory.target("b").review is None


@pytest.mark.parametrize(("budget", "config", "sizes"), [(None, {"warm_high": 2}, [2, 1]), (6, {}, [2, 1])])
async def test_a_bound_or_budget_that_was_lowered_holds_within_a_minute(
    budget: int | None, config: dict[str, int], sizes: list[int]
):
    assert list((await World({"a": 4, "b": 1}, budget=budget, **config).sizes()).values()) == sizes


async def test_between_reviews_nothing_grows():
    assert await World({"m": 0}, warm_low=2).sizes() == {"m": 0}


async def test_a_pool_in_service_is_not_shrunk_and_reviewed_once_it_rests():
    world = World({"m": 2}).week("m", used=1, active=1)
    assert await world.sizes() == {"m": 2}
    world.memory.target("m").active = 0
    assert await world.sizes() == {"m": 1}


async def test_an_api_server_that_is_away_leaves_the_review_for_later():
    world = World({"m": 2}).week("m", used=1)
    world.cluster.down = True
    await world.review.minute()
    world.cluster.down = False
    assert await world.sizes() == {"m": 1}
