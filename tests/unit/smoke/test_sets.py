"""Two sets of one model side by side: smoke looks at the one that serves, and begins once nobody asks the other."""

from typing import Any

from rules import labels
from settings.settings import Settings
from smoke.engines import Engines
from smoke.routers import differences
from smoke.sets import leave_old_sets
from tests.unit.smoke.fakes import MODEL, FakeCluster, dev_settings, engine_pod, pod

OLD, NEW = "aaaaaa", "bbbbbb"


class TwoSets(FakeCluster):
    """Engines and a router of an old and a new set, and the Service that selects one of them."""

    def __init__(self, serving: str = NEW) -> None:
        super().__init__({})
        self.asked: list[str] = []
        self.serving = serving
        self.objects = [_of(engine_pod(f"prefill-{one}", "prefill"), one) for one in (OLD, NEW)]
        for number, one in enumerate(self.objects):
            one["status"]["podIP"] = f"10.0.0.{number}"
        own = {"app.kubernetes.io/component": "router", labels.MODEL: MODEL}
        self.objects += [_of(pod(f"{MODEL}-router-{one}-1", dict(own)), one) for one in (OLD, NEW)]

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return f"/{resource}/{name}"

    async def get(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        return {"spec": {"selector": {labels.MODEL: MODEL} | labels.of_set(self.serving)}}


def _of(one: dict[str, Any], set_id: str) -> dict[str, Any]:
    one["metadata"]["labels"] |= labels.of_set(set_id)
    return one


def changing_as_a_whole() -> Settings:
    settings = dev_settings()
    model = settings.models[0].model_copy(update={"rollout": "blueGreen"})
    return settings.model_copy(update={"models": (model,)})


async def names_of(cluster: Any) -> list[str]:
    return [engine.pod for engine in await Engines(cluster).of(MODEL)]


async def test_the_engines_of_a_model_are_those_behind_the_routers_that_its_service_selects():
    assert await names_of(TwoSets(NEW)) == [f"prefill-{NEW}"]
    assert await names_of(TwoSets(OLD)) == [f"prefill-{OLD}"]


async def test_a_model_with_one_set_or_none_needs_no_look_at_its_service():
    cluster = TwoSets()
    cluster.objects = cluster.objects[1:2]
    assert await names_of(cluster) == [f"prefill-{NEW}"]
    assert cluster.asked == []


def test_a_router_should_know_the_engines_of_its_own_set_alone():
    objects = TwoSets().objects
    known = {f"{MODEL}-router-{OLD}-1": frozenset({"10.0.0.0"}), f"{MODEL}-router-{NEW}-1": frozenset({"10.0.0.1"})}
    models = changing_as_a_whole().models
    assert differences(models, objects, known) == {}
    mixed = known | {f"{MODEL}-router-{NEW}-1": frozenset({"10.0.0.0", "10.0.0.1"})}
    assert differences(models, objects, mixed) == {f"{MODEL}-router-{NEW}-1": "still has 10.0.0.0"}


async def test_the_proof_waits_until_gateways_have_forgotten_old_routers_and_only_then():
    cluster: Any = TwoSets()
    assert await leave_old_sets(changing_as_a_whole(), cluster, seconds=0)
    assert not await leave_old_sets(dev_settings(), cluster, seconds=0)
    cluster.objects = [one for one in cluster.objects if one["metadata"]["labels"][labels.SET] == NEW]
    assert not await leave_old_sets(changing_as_a_whole(), cluster, seconds=0)


async def test_a_router_that_is_going_is_no_reason_to_wait():
    cluster: Any = TwoSets()
    cluster.objects[2]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not await leave_old_sets(changing_as_a_whole(), cluster, seconds=0)
