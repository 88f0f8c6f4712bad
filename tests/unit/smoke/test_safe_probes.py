"""Each safe probe: green on a sound stack, red on the fault it is for."""

from dataclasses import replace

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rules import labels
from smoke.channel.plan import Fault
from smoke.channel.tokens import PrefixCache
from smoke.probe import LiveStack
from smoke.runner import run_probes
from smoke.suite import probes_of
from tests.unit.smoke.fakes import FakeCluster, FakeStack, dev_settings


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smoke.runner.PAUSES", (0.0, 0.0))
    monkeypatch.setattr("smoke.probes.second_replica.SETTLE_SECONDS", 0.0)


async def result_of(name: str, live: LiveStack):
    probe = next(probe for probe in probes_of(live.settings, ["safe"]) if probe.name == name)
    results, _ = await run_probes([probe], live, 20)
    return results[0]


def change(stack: FakeStack, **values) -> None:
    stack.plan = stack.plan.model_copy(update=values)


async def test_every_safe_probe_passes_on_a_sound_stack(live: LiveStack):
    results, evidence = await run_probes(probes_of(live.settings, ["safe"]), live, 30)
    closed = [r.name for r in results if r.verdict == "fail"]
    assert closed == []
    assert evidence["shared-prefix:dev-wide"]["hits"] > 0
    assert all(result.figure is not None for result in results)


@pytest.mark.parametrize(
    ("probe", "fault", "cause"),
    [
        ("chat:dev-wide", Fault(kind="status", status=503), "no worker is available"),
        ("chat:dev-wide", Fault(kind="status", status=404), "differs in case, hyphens or version"),
        ("chat:dev-wide", Fault(kind="garbage"), "can't be parsed"),
        ("chat:dev-wide", Fault(kind="no-choices"), "without choices"),
        ("stream:dev-wide", Fault(kind="cut"), "by RemoteProtocolError"),
        ("stream:dev-wide", Fault(kind="no-done"), "without [DONE]"),
        ("stream:dev-wide", Fault(kind="buffered"), "something buffers the stream"),
    ],
)
async def test_a_fault_of_the_answer_is_named(live: LiveStack, stack: FakeStack, probe: str, fault: Fault, cause: str):
    change(stack, faults=(fault,))
    result = await result_of(probe, live)
    assert result.verdict == "fail"
    assert cause in (result.cause or "")
    assert result.fix


@pytest.mark.parametrize("probe", ["401:no-key", "401:wrong-key", "401:malformed-key"])
async def test_a_door_without_a_lock_is_found(live: LiveStack, stack: FakeStack, monkeypatch, probe: str):
    monkeypatch.setattr(stack, "_admit", lambda request: None)
    result = await result_of(probe, live)
    assert (result.verdict, result.figure, result.threshold) == ("fail", 200, 401)


async def test_a_refusal_that_client_libraries_can_not_read_is_found(live: LiveStack, stack: FakeStack):
    async def plain(request: Request, error: Exception) -> Response:
        return Response("Unauthorized", 401)

    stack.app.exception_handlers[HTTPException] = plain
    result = await result_of("401:no-key", live)
    assert result.verdict == "fail"
    assert "without OpenAI's error body" in (result.cause or "")


async def test_a_disabled_smoke_key_is_named(live: LiveStack, stack: FakeStack):
    change(stack, keys=tuple(k.model_copy(update={"enabled": False}) for k in stack.plan.keys))
    result = await result_of("chat:dev-wide", live)
    assert result.verdict == "fail"
    assert "expired or disabled" in (result.cause or "")


async def test_a_model_more_or_less_than_declared_is_named(live: LiveStack, stack: FakeStack):
    change(stack, models=("Dev-Wide",))
    result = await result_of("models", live)
    assert result.verdict == "fail"
    assert "missing: dev-wide" in (result.cause or "")
    assert "not declared: Dev-Wide" in (result.cause or "")


async def test_a_gateway_that_takes_any_model_is_found(live: LiveStack, stack: FakeStack):
    change(stack, models=("dev-wide", "no-such-model-moonstack"))
    assert (await result_of("404:model", live)).verdict == "fail"


async def test_a_gateway_that_passes_any_path_on_is_found(live: LiveStack, stack: FakeStack):
    stack.app.add_route("/v1/no-such-path", lambda request: Response("passed on"))
    result = await result_of("404:path", live)
    assert (result.verdict, result.figure, result.threshold) == ("fail", 200, 404)


async def test_an_open_engine_path_is_found(live: LiveStack, stack: FakeStack):
    stack.app.add_route("/tokenize", lambda request: Response("tokens"))
    result = await result_of("404:engine-paths", live)
    assert result.verdict == "fail"
    assert "/tokenize" in (result.cause or "")


async def test_a_body_limit_that_is_not_in_force_is_found(live: LiveStack, stack: FakeStack):
    change(stack, max_body_bytes=2**30)
    result = await result_of("413", live)
    assert (result.verdict, result.figure) == ("fail", 200)


async def test_engines_with_other_weights_on_the_same_cache_are_found(live: LiveStack, cluster: FakeCluster):
    for engine in cluster.engines.values():
        engine.wrong_weights = True
    result = await result_of("golden-prompt:dev-wide", live)
    assert (result.verdict, result.figure) == ("fail", 0)
    assert "differ in weights" in (result.cause or "")


async def test_a_close_call_between_two_tokens_is_no_difference(live: LiveStack, cluster: FakeCluster):
    for engine in cluster.engines.values():
        engine.wrong_weights = True
    tolerant = replace(live, settings=dev_settings(goldenLogprobGap=1.0))
    assert (await result_of("golden-prompt:dev-wide", tolerant)).verdict == "pass"


async def test_a_cache_that_saves_nothing_fails_with_both_times(live: LiveStack, stack: FakeStack):
    change(stack, prefix_cache=False)
    result = await result_of("shared-prefix:dev-wide", live)
    assert result.verdict == "fail"
    assert result.figure is not None and result.threshold is not None and result.figure > result.threshold
    assert "saves too little" in (result.cause or "")


async def test_the_limit_of_the_ttft_ratio_is_the_configured_one(live: LiveStack, stack: FakeStack):
    change(stack, prefix_cache=False)
    lenient = replace(live, settings=dev_settings(warmOverColdTtft=0.999))
    result = await result_of("shared-prefix:dev-wide", lenient)
    assert result.threshold == 0.999


async def test_decode_without_hits_fails_though_ttft_fell(live: LiveStack, cluster: FakeCluster):
    cluster.engines["decode-a"].store = None
    result = await result_of("shared-prefix:dev-wide", live)
    assert result.verdict == "fail"
    assert "never asked the store" in (result.cause or "")


async def test_a_replica_that_can_not_read_the_others_blocks_is_found(live: LiveStack, cluster: FakeCluster):
    cluster.engines["prefill-b"].store = PrefixCache()
    result = await result_of("second-replica:dev-wide", live)
    assert result.verdict == "fail"
    assert "prefill-b computed again what prefill-a had computed" in (result.cause or "")
    assert "hash seed" in (result.cause or "")


async def test_no_hit_without_a_ready_master_names_the_master(live: LiveStack, cluster: FakeCluster):
    cluster.engines["prefill-b"].store = PrefixCache()
    cluster.objects = [o for o in cluster.objects if o["metadata"]["name"] != "mooncake-master-0"]
    result = await result_of("second-replica:dev-wide", live)
    assert "no Mooncake master is Ready" in (result.cause or "")


async def test_no_hit_with_an_empty_master_says_that_no_engine_is_registered(live: LiveStack, cluster: FakeCluster):
    cluster.engines["prefill-b"].store = PrefixCache()
    cluster.segments = "\n"
    result = await result_of("second-replica:dev-wide", live)
    assert "has no segment" in (result.cause or "")


async def test_different_identities_are_named(live: LiveStack, cluster: FakeCluster):
    cluster.engines["prefill-b"].store = PrefixCache()
    cluster.objects[1]["metadata"]["annotations"][labels.KV_IDENTITY] = "another"
    result = await result_of("second-replica:dev-wide", live)
    assert "2 different KV identities" in (result.cause or "")


async def test_too_small_a_share_from_the_store_fails_with_the_share(live: LiveStack):
    strict = replace(live, settings=dev_settings(minHitShare=1.0))
    result = await result_of("second-replica:dev-wide", strict)
    assert result.verdict == "fail"
    assert result.figure is not None and 0.5 < result.figure < 1


async def test_one_replica_alone_is_skipped_with_the_reason(live: LiveStack, cluster: FakeCluster):
    cluster.objects = [o for o in cluster.objects if o["metadata"]["name"] != "prefill-b"]
    result = await result_of("second-replica:dev-wide", live)
    assert result.verdict == "skip"


async def test_without_a_cluster_counters_are_skipped_and_ttft_still_counts(live: LiveStack):
    blind = replace(live, engines=None)
    assert (await result_of("second-replica:dev-wide", blind)).verdict == "skip"
    assert (await result_of("shared-prefix:dev-wide", blind)).verdict == "pass"
