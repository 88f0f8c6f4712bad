"""Probes of quota, cluster, channel and throughput: green on a sound stack, red on their fault."""

import json
import secrets
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from components.envoy.plan import public_models
from rules import labels
from settings.capacity_plan import costs
from settings.key_values.local import LocalKeys
from smoke.answers import Answer, Streamed, Usage
from smoke.channel.plan import KeyPlan
from smoke.cluster import Reply
from smoke.cost import LoadCost, run_cost
from smoke.engines import Engines
from smoke.page.render import report_page
from smoke.probe import LiveStack
from smoke.probes import compare, fallback, inside, paid, quota, throughput
from smoke.probes.routing import declared_names
from smoke.report import ProbeResult
from smoke.runner import run_probes
from smoke.suite import examine
from tests.unit.smoke.fakes import MODEL, FakeStack, dev_settings, engine_pod, pod


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smoke.runner.PAUSES", (0.0, 0.0))


async def one(module: Any, live: LiveStack, name: str) -> ProbeResult:
    probe = next(probe for probe in module.probes(live.settings) if probe.name == name)
    results, _ = await run_probes([probe], live, 20)
    return results[0]


def settings_with(**groups: Any) -> Any:
    settings = dev_settings()
    for name, update in groups.items():
        settings = settings.model_copy(update={name: getattr(settings, name).model_copy(update=update)})
    return settings


class Inside:
    """Routers, scalers and warm pods of a small stack."""

    namespace = "moonstack-dev"

    def __init__(self) -> None:
        self.objects = [
            {**engine_pod("prefill-a", "prefill"), "address": "10.0.0.1"},
            {**engine_pod("decode-a", "decode"), "address": "10.0.0.2"},
            pod("dev-wide-router-1", {"app.kubernetes.io/component": "router"}),
            pod("warm-a", {"moonstack.dev/warm-pool": "true"}),
        ]
        for thing in self.objects:
            thing["status"]["podIP"] = thing.pop("address", "10.0.0.9")
        self.workers = {"prefill": ["http://10.0.0.1:8000"], "decode": ["http://10.0.0.2:8000"]}
        self.active = "True"
        self.values = [{"value": "3"}]
        self.warm_replicas = 1
        self.metrics: list[Any] = [{"pods": {"metric": {"name": "inference_queue_depth"}}}]
        self.asked: tuple[str, Any] = ("", None)

    async def pods(self, selector: dict[str, str]) -> list[Any]:
        return [o for o in self.objects if selector.items() <= o["metadata"]["labels"].items()]

    async def through_pod(self, pod: str, port: int, path: str, *, body: Any = None) -> Reply:
        return Reply(200, json.dumps(self.workers))

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return f"/{resource}"

    async def items(self, path: str, selector: Any = None) -> list[Any]:
        if path == "/deployments":
            own = {"moonstack.dev/warm-pool": "true"}
            return [{"spec": {"replicas": self.warm_replicas, "template": {"metadata": {"labels": own}}}}]
        metrics = self.metrics
        state = {"type": "ScalingActive", "status": self.active, "message": "no metric"}
        return [{"metadata": {"name": "h"}, "spec": {"metrics": metrics}, "status": {"conditions": [state]}}]

    async def call(self, method: str, path: str, *, params: Any = None) -> Reply:
        self.asked = (path, params)
        return Reply(200, json.dumps({"items": self.values}))


def scaled(live: LiveStack, cluster: Inside) -> LiveStack:
    settings = dev_settings()
    engines = settings.autoscaling.engines.model_copy(update={"enabled": True})
    settings = settings.model_copy(
        update={
            "autoscaling": settings.autoscaling.model_copy(update={"engines": engines}),
            "warm_pool": settings.warm_pool.model_copy(update={"enabled": True}),
        }
    )
    return replace(live, settings=settings, engines=Engines(cluster))  # type: ignore[arg-type]


KEDAS = {
    "external": {
        "metric": {"name": "s0-prometheus", "selector": {"matchLabels": {"scaledobject.keda.sh/name": "dev-wide"}}}
    }
}


@pytest.mark.parametrize(
    ("metric", "asked"),
    [
        (None, ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/moonstack-dev/pods/*/inference_queue_depth", None)),
        (
            KEDAS,
            (
                "/apis/external.metrics.k8s.io/v1beta1/namespaces/moonstack-dev/s0-prometheus",
                {"labelSelector": "scaledobject.keda.sh/name=dev-wide"},
            ),
        ),
    ],
)
async def test_a_metric_is_asked_of_the_api_that_its_scaler_reads(live: LiveStack, metric: Any, asked: tuple[str, Any]):
    cluster = Inside()
    cluster.metrics = [metric] if metric else cluster.metrics
    result = await one(inside, scaled(live, cluster), "scaler-metrics")
    assert (result.verdict, result.figure) == ("pass", 1)
    assert cluster.asked == asked


INSIDE = ["routers", "scalers", "scaler-metrics", "warm-pool"]


@pytest.mark.parametrize("name", INSIDE)
async def test_a_sound_cluster_passes(live: LiveStack, name: str):
    assert (await one(inside, scaled(live, Inside()), name)).verdict == "pass"


@pytest.mark.parametrize(
    ("name", "change", "cause"),
    [
        ("routers", {"workers": {"prefill": ["http://10.0.0.1:8000"]}}, "does not know decode-a"),
        (
            "routers",
            {"workers": ["http://10.0.0.1:8000", "http://10.0.0.2:8000", "http://10.0.0.3:8000"]},
            "still has 10.0.0.3",
        ),
        ("scalers", {"active": "False"}, "is not active: no metric"),
        ("scaler-metrics", {"values": []}, "no value of inference_queue_depth"),
        ("scaler-metrics", {"metrics": []}, "no scaler reads a metric"),
        ("scaler-metrics", {"metrics": [KEDAS], "values": []}, "no value of s0-prometheus"),
        ("warm-pool", {"warm_replicas": 2}, "1 of 2 warm pods"),
    ],
)
async def test_each_fault_inside_is_named(live: LiveStack, name: str, change: dict[str, Any], cause: str):
    cluster = Inside()
    for attribute, value in change.items():
        setattr(cluster, attribute, value)
    result = await one(inside, scaled(live, cluster), name)
    assert result.verdict == "fail"
    assert cause in (result.cause or "")


async def test_a_pod_that_is_not_routed_need_not_be_known(live: LiveStack):
    cluster = Inside()
    cluster.objects[1]["metadata"]["labels"][labels.ROUTED] = "false"
    cluster.workers = {"prefill": ["http://10.0.0.1:8000"]}
    assert (await one(inside, scaled(live, cluster), "routers")).verdict == "pass"


def test_what_is_not_declared_is_not_probed():
    assert [probe.name for probe in inside.probes(dev_settings())] == ["routers"]


async def test_a_quota_in_force_passes(live: LiveStack):
    assert (await one(quota, live, "429")).verdict == "pass"


async def test_a_quota_that_is_not_in_force_fails(live: LiveStack, stack: FakeStack):
    unlimited = tuple(key.model_copy(update={"qps": None}) for key in stack.plan.keys)
    stack.plan = stack.plan.model_copy(update={"keys": unlimited})
    result = await one(quota, live, "429")
    assert (result.verdict, result.figure) == ("fail", 0)


async def test_each_alias_is_called_once_with_one_token(live: LiveStack, stack: FakeStack):
    live = replace(live, settings=settings_with(channel={"enabled": True}))
    entries = live.settings.channel_models.models
    stack.own = {entry.alias: f"channel/{entry.model_name}" for entry in entries}
    stack.plan = stack.plan.model_copy(update={"models": (MODEL, *list(stack.own)[:-1])})
    results, _ = await run_probes(paid.probes(live.settings), live, 20)
    assert [result.verdict for result in results] == ["pass"] * 3 + ["fail"]
    assert all(result.kind == "paid" for result in results)
    assert "letter by letter" in (results[-1].fix or "")


async def alias_of_the_cluster(live: LiveStack, stack: FakeStack, outside: str) -> ProbeResult:
    """The alias is served by the cluster, and its model at the channel by `outside`."""
    twin = with_twin().channel_models.models[0]
    stack.plan = stack.plan.model_copy(update={"models": (MODEL, twin.alias, twin.model_name)})
    stack.own = {twin.alias: f"cluster/{MODEL}", twin.model_name: outside}
    return await one(paid, replace(live, settings=with_twin()), f"alias:{twin.alias}")


async def test_an_alias_that_the_cluster_serves_is_asked_of_the_channel_too(live: LiveStack, stack: FakeStack):
    model = with_twin().channel_models.models[0].model_name
    assert (await alias_of_the_cluster(live, stack, f"channel/{model}")).verdict == "pass"
    result = await alias_of_the_cluster(live, stack, f"cluster/{MODEL}")
    assert f"{model} was asked of the channel, and cluster/{MODEL} answered" in (result.cause or "")


async def test_an_alias_that_another_model_answers_for_is_seen(live: LiveStack, stack: FakeStack):
    twin = with_twin().channel_models.models[0]
    stack.plan = stack.plan.model_copy(update={"models": (MODEL, twin.alias)})
    stack.own = {twin.alias: "channel/another"}
    result = await one(paid, replace(live, settings=with_twin()), f"alias:{twin.alias}")
    assert "channel/another stood in for" in (result.cause or "")


async def test_cluster_and_channel_are_asked_the_same_side_by_side(live: LiveStack, stack: FakeStack):
    entry = with_twin(model_name=MODEL).channel_models.models[0]
    result = await one(compare, replace(live, settings=with_twin(model_name=MODEL)), f"compare:{MODEL}")
    assert (result.verdict, result.figure, result.kind) == ("pass", 0, "paid")
    stack.own = {MODEL: f"channel/{entry.model_name}"}
    result = await one(compare, replace(live, settings=with_twin(model_name=MODEL)), f"compare:{MODEL}")
    assert f"cluster/{MODEL} was asked, and channel/{MODEL} answered" in (result.cause or "")


@pytest.mark.parametrize(("there", "verdict"), [(110, "pass"), (111, "fail"), (89, "fail")])
def test_another_tokenizer_at_the_channel_fails(there: int, verdict: str):
    def answer(prompt: int) -> Answer:
        usage = {"prompt_tokens": prompt, "completion_tokens": 16}
        return Answer(status=200, body=json.dumps({"choices": [], "usage": usage}).encode())

    entry = with_twin().channel_models.models[0]
    assert compare.judge(MODEL, entry, answer(100), answer(there), 0.1).verdict == verdict


def test_without_a_way_to_the_channel_there_is_nothing_to_compare():
    once = {"retry": dev_settings().channel.retry.model_copy(update={"max_attempts": 1})}
    settings = with_twin()
    unreached = settings.model_copy(update={"channel": settings.channel.model_copy(update=once)})
    assert compare.probes(unreached) == fallback.probes(unreached) == []


def with_twin(**changes: Any) -> Any:
    settings = settings_with(channel={"enabled": True})
    twin = settings.channel_models.models[0].model_copy(update={"in_cluster": MODEL, **changes})
    models = settings.channel_models.model_copy(update={"models": (twin,)})
    return settings.model_copy(update={"channel_models": models})


@pytest.mark.parametrize(("works", "verdict"), [(True, "pass"), (False, "fail")])
async def test_the_channel_must_answer_where_the_cluster_can_not(
    live: LiveStack, stack: FakeStack, works: bool, verdict: str
):
    stack.fallback = works
    result = await one(fallback, replace(live, settings=with_twin()), f"fallback:{MODEL}")
    assert result.verdict == verdict


@pytest.mark.parametrize(("heed_all", "verdict"), [(False, "pass"), (True, "fail")])
async def test_a_client_can_not_choose_its_target(live: LiveStack, stack: FakeStack, heed_all: bool, verdict: str):
    value = "sk-" + secrets.token_hex(24)
    LocalKeys().put("dev-client", "current", value)
    client = KeyPlan(id="dev-client", value=SecretStr(value))
    stack.plan = stack.plan.model_copy(update={"keys": (*stack.plan.keys, client)})
    stack.heed_all = heed_all
    assert (await one(fallback, replace(live, settings=with_twin()), "key-separation")).verdict == verdict


async def test_without_the_clients_key_separation_is_skipped(live: LiveStack):
    blind = replace(live, settings=with_twin(), engines=None)
    assert (await one(fallback, blind, "key-separation")).verdict == "skip"


def test_a_model_without_a_stand_in_has_no_fallback_to_prove():
    assert fallback.probes(settings_with(channel={"enabled": True})) == []
    assert fallback.probes(dev_settings()) == []


def test_without_a_channel_nothing_is_paid_for():
    assert paid.probes(dev_settings()) == []


async def test_the_report_says_what_a_million_good_tokens_cost(
    live: LiveStack, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("smoke.suite.PROBES", (throughput,))
    report = await examine(replace(live, settings=with_objective(60)), ["disruptive"])
    cost = report.cost
    assert cost is not None and cost.per_million_tokens is not None and cost.per_million_answer_tokens is not None
    load = cost.loads[f"throughput:{MODEL}"]
    assert load.good_requests == load.requests == throughput.REQUESTS
    assert load.answer_tokens == throughput.REQUESTS * throughput.ANSWER_TOKENS
    hourly = cost.per_hour["declared"] + cost.per_hour["warmPool"]
    assert load.yuan == pytest.approx(hourly * load.seconds / 3600, rel=0.01)
    assert cost.per_million_answer_tokens == pytest.approx(load.yuan / load.answer_tokens * 1e6, rel=0.01)
    assert cost.per_million_tokens < cost.per_million_answer_tokens
    html = report_page(report, {})
    assert f"{cost.per_million_tokens:g} yuan" in html and "20 of 20 requests good" in html
    assert key not in report.to_json()


def test_tokens_that_came_too_late_are_no_good_ones():
    settings = with_cost_per_chip(36.0)
    within = settings.autoscaling.engines.ttft_seconds
    used = Usage(prompt_tokens=100, completion_tokens=10)
    answers = [Streamed(status=200, first_token_seconds=within + late, usage=used) for late in (-1, 0, 0.1)]
    load = LoadCost.of(settings, answers, 10)
    assert (load.good_requests, load.prompt_tokens, load.answer_tokens) == (2, 200, 20)
    assert load.yuan == pytest.approx(costs(settings)["declared"] / 360)
    late = {"throughput:m": {"cost": LoadCost.of(settings, answers[2:], 10).model_dump()}}
    assert run_cost(settings, late, []).per_million_tokens is None
    assert run_cost(settings, {"shared-prefix:m": {"cold": [1]}}, []).loads == {}


def with_objective(seconds: float) -> Any:
    scaling = dev_settings().autoscaling
    engines = scaling.engines.model_copy(update={"ttft_seconds": seconds})
    return settings_with(autoscaling={"engines": engines})


def with_cost_per_chip(yuan: float) -> Any:
    settings = dev_settings()
    pools = tuple(pool.model_copy(update={"cost_per_chip_hour": yuan}) for pool in settings.node_pools)
    return settings.model_copy(update={"node_pools": pools})


async def test_what_the_probes_asked_of_the_channel_is_in_the_reports_cost(live: LiveStack, stack: FakeStack):
    settings = with_twin(price_per_million_input=0.0, price_per_million_output=1e6)
    stack.own = {MODEL: f"channel/{settings.channel_models.models[0].model_name}"}
    report = await examine(replace(live, settings=settings), ["paid"])
    assert report.cost is not None
    answered = sum(usage.completion_tokens for who, usage in live.gateway.paid if who.startswith("channel/") and usage)
    assert report.cost.channel == answered > 0
    assert report.cost.per_million_tokens is None


async def test_reuse_is_measured_against_the_same_work_without_it(stack: FakeStack, live: LiveStack):
    result = await one(throughput, live, f"throughput:{MODEL}")
    assert result.kind == "disruptive"
    measured = stack.salted[-2 * throughput.REQUESTS - throughput.CONTEXTS :]
    assert measured.count(True) == measured[-throughput.REQUESTS :].count(False) == throughput.REQUESTS


@pytest.mark.parametrize(("reused", "verdict"), [(1.3, "pass"), (1.29, "fail")])
def test_a_gain_of_less_than_30_percent_fails(reused: float, verdict: str):
    assert throughput.judge(1.0, reused).verdict == verdict


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("in_cluster", [None, MODEL])
def test_the_declared_names_are_those_that_the_gateway_lists(enabled: bool, in_cluster: str | None):
    settings = settings_with(channel={"enabled": enabled})
    first, *rest = settings.channel_models.models
    entries = (first.model_copy(update={"in_cluster": in_cluster}), *rest)
    settings = settings.model_copy(
        update={"channel_models": settings.channel_models.model_copy(update={"models": entries})}
    )
    models = public_models(settings)
    listed = {model.name for model in models}
    if any(model.alias for model in models):
        listed.add(settings.channel_models.group)
    assert declared_names(settings) == listed
