"""Drills count what was lost, outlast the end, and wait for the cluster to be whole."""

import asyncio
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rules import labels
from settings.channel import DEFAULT_MODELS, ChannelModelsSettings, ChannelSettings
from settings.kv_store import KvStoreSettings
from smoke.channel.plan import Fault
from smoke.cluster import Reply
from smoke.drills.catalogue import CATALOGUE, kill_session, replaceable, roles
from smoke.drills.drill import Drill, Ground, judge
from smoke.drills.hands import Hands
from smoke.drills.run import run_drill
from smoke.errors import PermanentError
from smoke.load import Sample
from smoke.probe import LiveStack
from tests.unit.smoke.fakes import MODEL, FakeStack, dev_settings


async def nothing(_: Ground) -> None:
    await asyncio.sleep(0)


DRILL = Drill(name="d", what="w", carried_by="c", act=nothing)


def ok(began: float, first_token: float = 0.1) -> Sample:
    return Sample(began, began + 1, "ok", 200, first_token)


LOST, BROKEN = Sample(1, 2, "lost", 503, cause="no worker"), Sample(1, 2, "broken", 200, 0.1)


@pytest.mark.parametrize(
    ("samples", "allowed", "verdict"),
    [
        ([ok(1), ok(11)], False, "pass"),
        ([ok(1), LOST, ok(11)], False, "fail"),
        ([ok(1), BROKEN, ok(11)], False, "fail"),
        ([ok(1), BROKEN, ok(11)], True, "pass"),
        ([ok(1), LOST, ok(11)], True, "fail"),
        ([ok(1), ok(9)], False, "fail"),
        ([], False, "fail"),
    ],
)
def test_a_drill_passes_only_when_nothing_was_lost_and_load_outlasted_the_end(
    samples: list[Sample], allowed: bool, verdict: str
):
    assert judge(replace(DRILL, broken_allowed=allowed), samples, ended=10, slow_seconds=5).verdict == verdict


def test_a_broken_stream_is_told_with_what_broke_it():
    broken = replace(BROKEN, cause="after 3 chunks and 30.2 s by ReadTimeout")
    result = judge(DRILL, [ok(1), broken, broken, ok(11)], ended=10, slow_seconds=5)
    assert result.cause == "2 streams broke, the first after 3 chunks and 30.2 s by ReadTimeout"


def test_slow_answers_are_counted_and_are_no_loss():
    result = judge(DRILL, [ok(1, 9), ok(11)], ended=10, slow_seconds=5)
    assert (result.slow, result.verdict) == (1, "pass")


def test_the_cause_names_the_first_loss():
    assert "1 lost: no worker" in (judge(DRILL, [LOST, ok(11)], 10, 5).cause or "")


QUICK = {"users": 2, "maxTokens": 4, "settleSeconds": 0.3, "slowSeconds": 5}


def ground(live: LiveStack) -> Ground:
    quick = replace(live, settings=dev_settings(drills=QUICK))
    return Ground(live=quick, hands=None, model=MODEL)  # type: ignore[arg-type]


async def test_a_harmless_disturbance_loses_nothing(live: LiveStack):
    result = await run_drill(DRILL, ground(live))
    assert (result.verdict, result.lost, result.broken) == ("pass", 0, 0)
    assert result.requests > 2


async def test_the_load_lasts_until_a_request_after_the_end_is_answered(live: LiveStack, stack: FakeStack):
    stack.plan = stack.plan.model_copy(update={"first_token_seconds": 1.0})
    result = await run_drill(DRILL, ground(live))
    assert result.verdict == "pass", result.cause


async def test_a_gateway_that_refuses_meanwhile_fails_the_drill(live: LiveStack, stack: FakeStack):
    async def outage(_: Ground) -> None:
        stack.plan = stack.plan.model_copy(update={"faults": (Fault(kind="status", status=503),)})
        await asyncio.sleep(0.3)
        stack.plan = stack.plan.model_copy(update={"faults": ()})

    result = await run_drill(replace(DRILL, act=outage), ground(live))
    assert result.verdict == "fail"
    assert result.lost > 0


async def test_a_disturbance_that_does_not_work_fails_the_drill_with_its_cause(live: LiveStack):
    async def broken(_: Ground) -> None:
        raise PermanentError("no such pod", "deploy")

    result = await run_drill(replace(DRILL, act=broken), ground(live))
    assert (result.verdict, result.cause) == ("fail", "no such pod; deploy")


async def test_a_local_drill_is_skipped_elsewhere(live: LiveStack):
    settings = live.settings.model_copy(
        update={"cluster": live.settings.cluster.model_copy(update={"kubeconfig": None})}
    )
    result = await run_drill(
        replace(DRILL, local_only=True),
        Ground(live=replace(live, settings=settings), hands=None, model=MODEL),  # type: ignore[arg-type]
    )
    assert result.verdict == "skip"


def test_every_planned_event_may_lose_and_break_nothing():
    assert [one.name for one in CATALOGUE if one.broken_allowed] == ["kill-engine"]
    assert len({one.name for one in CATALOGUE}) == len(CATALOGUE)
    assert all(one.carried_by for one in CATALOGUE)


class Deployment:
    """A Deployment whose pods take some looks to change, in the API's shapes."""

    namespace = "moonstack-dev"

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.generation = 0
        self.pod_list = [self._pod(n) for n in range(replicas)]
        self.looks = 0
        self.calls: list[tuple[str, str]] = []
        self.budget = 0

    @property
    def object(self) -> dict[str, Any]:
        return self._object("prefill")

    def _object(self, role: str) -> dict[str, Any]:
        own = {labels.MODEL: MODEL, labels.ROLE: role}
        spec = {"replicas": self.replicas, "selector": {"matchLabels": own}, "template": {"metadata": {"labels": own}}}
        return {"metadata": {"name": "dev-wide-prefill"}, "spec": spec}

    def _pod(self, number: int) -> dict[str, Any]:
        name = f"pod-{self.generation}-{number}"
        own = {labels.MODEL: MODEL, labels.ROLE: "prefill", "pod-template-hash": "x"}
        state = {"conditions": [{"type": "Ready", "status": "True"}]}
        return {"metadata": {"name": name, "uid": name, "labels": own}, "status": state}

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return f"/{resource}/{name}".rstrip("/")

    async def items(self, path: str, selector: Any = None) -> list[Any]:
        return [self._object(role) for role in ("prefill", "decode")]

    async def pods(self, selector: Any) -> list[Any]:
        self.looks += 1
        if self.looks % 5 == 0:
            self.pod_list = [self._pod(n) for n in range(self.replicas)]
        return self.pod_list

    async def call(self, method: str, path: str, *, params: Any = None, body: Any = None, kind: str = "") -> Reply:
        self.calls.append((method, path))
        if path.endswith("/eviction") and self.budget > 0:
            self.budget -= 1
            return Reply(429, "{}")
        if path.endswith("/scale"):
            self.replicas = body["spec"]["replicas"]
        else:
            self.generation += 1
        return Reply(200, "{}")


def hands(deployment: Deployment, patience: float = 5) -> Hands:
    return Hands(deployment, patience=patience, pause=0)  # type: ignore[arg-type]


async def test_scaling_waits_until_the_pods_are_as_many():
    deployment = Deployment(2)
    await hands(deployment).scale(deployment.object, 1)
    assert len(deployment.pod_list) == 1


async def test_a_restart_waits_until_no_old_pod_is_left():
    deployment = Deployment(2)
    await hands(deployment).restart(deployment.object)
    assert {pod["metadata"]["name"] for pod in deployment.pod_list} == {"pod-1-0", "pod-1-1"}


async def test_an_eviction_that_a_budget_refuses_is_tried_again():
    deployment = Deployment(1)
    deployment.budget = 3
    await hands(deployment).evict(list(deployment.pod_list))
    assert [path for _, path in deployment.calls].count("/pods/pod-0-0/eviction") == 4


async def test_what_never_ends_is_said_after_the_patience():
    deployment = Deployment(2)
    deployment.pods = lambda selector: asyncio.sleep(0, [])  # type: ignore[method-assign]
    with pytest.raises(PermanentError, match="did not end within"):
        await hands(deployment, patience=0.05).scale(deployment.object, 1)


async def test_a_missing_right_is_named():
    deployment = Deployment(1)
    deployment.call = lambda *a, **k: asyncio.sleep(0, Reply(403, "{}"))  # type: ignore[method-assign]
    with pytest.raises(PermanentError, match="refused with 403"):
        await hands(deployment).scale(deployment.object, 0)


def test_only_objects_that_carry_no_request_are_replaced_while_up_is_killed():
    kinds = (
        "policy/v1:PodDisruptionBudget",
        "networking.k8s.io/v1:NetworkPolicy",
        "apps/v1:Deployment",
        "core/v1:Secret",
    )
    resources = [{"urn": kind, "type": f"kubernetes:{kind}"} for kind in kinds]
    stack = {"urn": "urn:pulumi:dev::moonstack", "type": "pulumi:pulumi:Stack"}
    assert replaceable({"deployment": {"resources": [stack, *resources]}}) == list(kinds[:2])


@pytest.mark.parametrize("name", ["kill-master", "metrics-outage"])
async def test_what_a_stack_does_not_have_is_not_taken_away(live: LiveStack, name: str):
    drill = next(drill for drill in CATALOGUE if drill.name == name)
    bare = dev_settings(drills=QUICK).model_copy(update={"kv_store": KvStoreSettings(enabled=False)})
    result = await run_drill(drill, Ground(live=replace(live, settings=bare), hands=None, model=MODEL))  # type: ignore[arg-type]
    assert result.verdict == "skip"
    assert "is off" in (result.cause or "")


@pytest.mark.parametrize("name", ["scale-down", "kill-engine", "drain-engines"])
async def test_an_engine_that_is_alone_is_not_taken_where_nobody_else_answers(live: LiveStack, name: str):
    drill = replace(next(drill for drill in CATALOGUE if drill.name == name), act=nothing)
    for engines, verdict in ((1, "skip"), (2, "pass")):
        place = replace(ground(live), hands=hands(Deployment(engines)))
        result = await run_drill(drill, place)
        assert result.verdict == verdict, result
    assert "replicas of dev-wide to 2" in (await drill.needs(replace(place, hands=hands(Deployment(1)))) or "")


async def test_an_engine_that_is_alone_may_go_where_the_channel_has_the_model(live: LiveStack):
    drill = next(drill for drill in CATALOGUE if drill.name == "drain-engines")
    place = replace(ground(live), hands=hands(Deployment(1)))
    for twin, needed in ((MODEL, False), ("other", True)):
        models = tuple(one.model_copy(update={"in_cluster": twin}) for one in DEFAULT_MODELS)
        more = {"channel": ChannelSettings(enabled=True), "channel_models": ChannelModelsSettings(models=models)}
        settings = place.live.settings.model_copy(update=more)
        assert bool(await drill.needs(replace(place, live=replace(live, settings=settings)))) == needed


def test_an_aggregated_model_is_drilled_at_its_only_role(live: LiveStack):
    settings = dev_settings(drills=QUICK)
    (model,) = settings.models
    aggregated = model.model_copy(update={"shape": "aggregated", "serve": model.decode})
    alone = replace(live, settings=settings.model_copy(update={"models": (aggregated,)}))
    assert roles(Ground(live=live, hands=None, model=MODEL)) == ("prefill", "decode")  # type: ignore[arg-type]
    assert roles(Ground(live=alone, hands=None, model=MODEL)) == ("serve",)  # type: ignore[arg-type]


def test_a_killed_session_leaves_no_group_of_its_own_behind():
    script = "import os, subprocess, time; print(subprocess.Popen(['sleep', '60'], process_group=0).pid, flush=True); time.sleep(60)"
    leader = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    kill_session(leader.pid)
    leader.wait(10)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and _state(child) != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
