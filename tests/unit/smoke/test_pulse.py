"""Load, the three times and the criteria of a pulse."""

import asyncio
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import httpx
import pytest
from pydantic import SecretStr

from smoke.answers import Usage
from smoke.channel.app import Channel
from smoke.channel.plan import ChannelPlan, Fault, KeyPlan
from smoke.channel.serve import serve
from smoke.client import GatewayClient
from smoke.cost import Cost, Paid, channel_spend, chip_spend, usage_of
from smoke.load import Load, Request, Sample
from smoke.probe import LiveStack
from smoke.pulse.judge import Stages, Targets, criteria, times
from smoke.pulse.result import PulseResult
from smoke.pulse.run import pulse, pulse_page, timeline_of
from smoke.pulse.watch import Moment
from tests.unit.smoke.fakes import MODEL, FakeCluster, FakeEngine, FakeStack, dev_settings, engine_pod

STAGES = Stages(low=5, high=50, before=30, ramp=10, top=60, after=30)
TARGETS = Targets(queue=10, ttft=2)


def moment(at: float, **more: Any) -> Moment:
    values: dict[str, Any] = {
        "queue": 0,
        "kv_usage": 0.2,
        "replicas": 2,
        "desired": 2,
        "warm": 0,
        "busy_pods": frozenset("ab"),
    }
    return Moment(at=at, **(values | more))


def ok(began: float, first_token: float = 0.5) -> Sample:
    return Sample(began, began + first_token + 0.1, "ok", 200, first_token)


def test_users_follow_the_stages():
    assert [STAGES.users(at) for at in (0, 29, 35, 40, 99, 100, 129)] == [5, 5, 28, 50, 50, 5, 5]


def test_the_three_times_count_from_the_ramp():
    moments = [
        moment(10),
        moment(44, queue=12),
        moment(50, queue=30, desired=3),
        moment(70, desired=3, replicas=3),
        moment(90, desired=3, replicas=3, busy_pods=frozenset("abc")),
    ]
    found = times(STAGES, TARGETS, [ok(10)], moments)
    assert (found.metric_over_target, found.hpa_decision, found.new_instance_serving) == (14, 20, 60)


def test_a_late_first_token_counts_as_over_target():
    assert times(STAGES, TARGETS, [ok(40, 2.5)], [moment(10)]).metric_over_target == 12.5


def test_without_a_scaler_nothing_is_decided():
    found = times(STAGES, TARGETS, [], [moment(10), moment(50, queue=99)])
    assert found.metric_over_target == 20
    assert found.hpa_decision is None
    assert found.new_instance_serving is None


def verdicts(samples: list[Sample], moments: list[Moment]) -> dict[str, str]:
    return {one.name: one.verdict for one in criteria(STAGES, TARGETS, samples, moments)}


def test_a_stack_that_recovers_passes():
    found = verdicts([ok(50, 5), ok(120)], [moment(60, queue=40, kv_usage=0.95), moment(128, kv_usage=0.7)])
    assert set(found.values()) == {"pass"}


@pytest.mark.parametrize(
    ("samples", "moments", "missed"),
    [
        ([ok(117, 5)], [moment(128)], "ttft-recovers"),
        ([], [moment(128)], "ttft-recovers"),
        ([ok(120)], [moment(128, queue=11)], "queue-drains"),
        ([ok(120)], [moment(60, kv_usage=0.95), moment(128, kv_usage=0.9)], "kv-settles"),
        ([ok(120), Sample(50, 51, "lost", 503)], [moment(128)], "nothing-lost"),
    ],
)
def test_each_criterion_is_missed_by_its_own_fault(samples: list[Sample], moments: list[Moment], missed: str):
    assert verdicts(samples, moments)[missed] == "fail"


async def test_a_stream_that_broke_before_its_first_token_has_no_first_token():
    load = await run_load(1, 0.3, faults=(Fault(kind="cut"),), tokens=1)
    assert {(sample.outcome, sample.first_token) for sample in load.samples} == {("broken", None)}
    assert all(
        "after 0 chunks" in str(sample.cause) and "RemoteProtocolError" in str(sample.cause) for sample in load.samples
    )


def test_kv_space_that_never_filled_is_not_claimed_to_have_settled():
    assert verdicts([ok(120)], [moment(128)])["kv-settles"] == "skip"


async def run_load(
    users: int, seconds: float, faults: tuple[Fault, ...] = (), rate: float | None = None, tokens: int = 4
) -> Load:
    value = "sk-" + secrets.token_hex(24)
    keys = (KeyPlan(id="a", value=SecretStr(value)),)
    channel = Channel(ChannelPlan(models=("m",), keys=keys, first_token_seconds=0.05, faults=faults))
    async with serve(channel) as url, httpx.AsyncClient(base_url=url) as http:
        load = Load(GatewayClient(http, value), Request(model="m", max_tokens=tokens))
        if rate is None:
            await load.closed(lambda _: users, seconds)
        else:
            await load.arriving(lambda _: rate, seconds)
        return load


async def test_a_closed_loop_keeps_so_many_users_busy():
    load = await run_load(users=3, seconds=0.8)
    most = max(sum(other.began <= one.began < other.ended for other in load.samples) for one in load.samples)
    assert most == 3
    assert {sample.outcome for sample in load.samples} == {"ok"}
    assert load.open == 0


async def test_an_open_loop_sends_at_its_rate_whatever_the_answers_do():
    load = await run_load(users=0, seconds=1.0, rate=20)
    assert 15 <= len(load.samples) <= 21


async def test_lost_and_broken_are_told_apart():
    load = await run_load(1, 0.5, faults=(Fault(kind="status", share=0.5), Fault(kind="cut")))
    assert {sample.outcome for sample in load.samples} == {"lost", "broken"}
    assert all(sample.status == 503 for sample in load.samples if sample.outcome == "lost")


def test_the_page_shows_times_and_plots():
    samples, moments = [ok(10), ok(120)], [moment(10), moment(50, queue=20)]
    result = PulseResult(
        stack="dev",
        model="m",
        started=datetime.now(UTC),
        verdict="pass",
        times=times(STAGES, TARGETS, samples, moments),
        criteria=criteria(STAGES, TARGETS, samples, moments),
        requests=2,
        lost=0,
        broken=0,
        tokens_per_second=1,
        cost_per_million_tokens=3.5,
        timeline=timeline_of(STAGES, samples, moments),
    )
    html = pulse_page(result, TARGETS)
    assert "did not happen" in html
    assert html.count("<polyline") == 6
    assert result.model_dump(by_alias=True)["schema"] == 1


def test_the_cost_counts_chips_warm_pool_and_channel_over_good_tokens_alone():
    hourly = {"declared": 360.0, "warmPool": 36.0, "minimum": 1.0, "maximum": 9.0}
    chips = chip_spend(hourly, 3600)
    assert chips == 396
    assert Cost(chips=chips, channel=0, unpriced_tokens=0).per_million(1_000_000) == 396
    assert Cost(chips=chips, channel=4, unpriced_tokens=0).per_million(500_000) == 800
    assert Cost(chips=chips, channel=4, unpriced_tokens=0).per_million(0) is None


def test_the_channel_is_paid_for_what_it_answered_by_the_declared_prices():
    settings = dev_settings()
    entries = list(settings.channel_models.models)
    entries[0] = entries[0].model_copy(update={"price_per_million_input": 2.0, "price_per_million_output": 8.0})
    models = settings.channel_models.model_copy(update={"models": tuple(entries)})
    settings = settings.model_copy(update={"channel_models": models})
    used = Usage(prompt_tokens=1000, completion_tokens=500)

    def served(who: str, outcome: Literal["ok", "lost", "broken"] = "ok", usage: Usage | None = used) -> Paid:
        sample = Sample(0, 1, outcome, 200, 0.1, served_by=who, usage=usage)
        return sample.served_by, usage_of(settings, sample)

    first, second = (f"channel/{entry.model_name}" for entry in entries[:2])
    assert channel_spend(settings, [served(f"cluster/{MODEL}"), served("")]) == (0, 0)
    assert channel_spend(settings, [served(first), served(first, "broken")]) == (pytest.approx(0.012), 0)
    assert channel_spend(settings, [served(second)]) == (0, 1500), (
        "a model without a price is named, not taken for free"
    )
    pulse_of = settings.smoke.pulse
    asked = (2 * pulse_of.prompt_words + 8 * pulse_of.max_tokens) / 1e6
    assert channel_spend(settings, [served(first, "broken", None)]) == (pytest.approx(asked), 0)


async def test_a_pulse_that_the_channel_answered_costs_what_it_charges(live: LiveStack, stack: FakeStack):
    config = {"lowUsers": 1, "highUsers": 1, "stageSeconds": [0.1, 0.1, 0.1, 0.1], "promptWords": 20, "maxTokens": 4}
    settings = dev_settings(pulse=config)
    entry = settings.channel_models.models[0].model_copy(update={"price_per_million_output": 1e6})
    models = settings.channel_models.model_copy(update={"models": (entry,)})
    stack.own = {MODEL: f"channel/{entry.model_name}"}
    live = replace(live, settings=settings.model_copy(update={"channel_models": models}))
    result = await pulse(live, MODEL)
    assert result.channel_spend == 4 * result.requests
    assert result.cost_per_million_tokens is not None and result.cost_per_million_tokens >= 1e6
    assert ">yuan at the channel<" in pulse_page(result, TARGETS)


async def test_a_pulse_on_a_stack_that_scales_reports_all_three_times(
    live: LiveStack, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("smoke.pulse.watch.PERIOD_SECONDS", 0.05)
    monkeypatch.setattr("smoke.pulse.judge.LAST_SECONDS", 0.3)
    hpa = {
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"name": f"{MODEL}-prefill-ascend"}},
        "status": {"desiredReplicas": 3},
    }
    cluster.hpas.append(hpa)

    async def scale_out() -> None:
        await asyncio.sleep(0.8)
        cluster.engines["prefill-a"].waiting = 20
        await asyncio.sleep(0.2)
        hpa["status"] = {"desiredReplicas": 4}
        await asyncio.sleep(0.2)
        cluster.engines["prefill-c"] = FakeEngine(None, answered=1)
        cluster.objects.append(engine_pod("prefill-c", "prefill"))
        cluster.engines["prefill-a"].waiting = 0

    pulse_settings = {
        "lowUsers": 1,
        "highUsers": 4,
        "stageSeconds": [0.6, 0.1, 0.8, 0.4],
        "promptWords": 20,
        "maxTokens": 4,
    }
    live = replace(live, settings=dev_settings(pulse=pulse_settings))
    result, _ = await asyncio.gather(pulse(live, MODEL), scale_out())
    assert result.verdict == "pass", result.criteria
    times = result.times
    assert times.metric_over_target is not None
    assert times.hpa_decision is not None
    assert times.new_instance_serving is not None
    assert times.metric_over_target <= times.hpa_decision <= times.new_instance_serving
    assert result.requests > 4


async def test_a_queue_that_stays_full_fails_the_pulse(
    live: LiveStack, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("smoke.pulse.watch.PERIOD_SECONDS", 0.05)
    cluster.engines["decode-a"].waiting = 50
    live = replace(
        live, settings=dev_settings(pulse={"lowUsers": 1, "highUsers": 1, "stageSeconds": [0.1, 0.1, 0.1, 0.1]})
    )
    result = await pulse(live, MODEL)
    assert result.verdict == "fail"
    assert [one.name for one in result.criteria if one.verdict == "fail"] == ["queue-drains"]
