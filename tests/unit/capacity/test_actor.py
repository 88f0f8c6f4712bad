"""What is written to the API server, and what happens when it says no."""

from bench.simulated.cluster import FakeCluster
from capacity.act.actor import Actor
from capacity.plan.model import Route, SetCost, SetFloor
from capacity.pods import DELETION_COST, Pod
from capacity.telemetry import Telemetry

HPA = "/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/m"
POD = "/api/v1/namespaces/n/pods/w1"


def pod(uid: str = "uid-w1") -> Pod:
    return Pod("w1", uid, "127.0.0.1", ready=True)


async def test_another_pod_that_took_the_name_is_left_alone():
    cluster = FakeCluster()
    cluster.pod("w1", labels={"moonstack.dev/routed": "false"})
    telemetry = Telemetry()
    actor = Actor(cluster.kube(), "n", telemetry)
    assert await actor.carry_out([Route("m", pod("an-older-uid"), True, "load")]) == []
    assert cluster.objects[POD]["metadata"]["labels"]["moonstack.dev/routed"] == "false"
    assert telemetry.registry.get_sample_value("moonstack_capacity_action_errors_total", {"action": "Route"}) == 1
    assert len(await actor.carry_out([Route("m", pod(), True, "load")])) == 1
    assert cluster.objects[POD]["metadata"]["labels"] == {
        "moonstack.dev/routed": "true",
        "warm": "false",
        "ready": "true",
    }


async def test_one_refused_action_does_not_hold_up_the_next():
    cluster = FakeCluster()
    cluster.pod("w1")
    actor = Actor(cluster.kube(), "n", Telemetry())
    done = await actor.carry_out([SetFloor("m", 5), SetCost(pod(), 4)])
    assert done == [SetCost(pod(), 4)]
    assert cluster.objects[POD]["metadata"]["annotations"] == {DELETION_COST: "4"}


async def test_an_hpa_that_is_not_there_yet_is_none():
    cluster = FakeCluster()
    actor = Actor(cluster.kube(), "n", Telemetry())
    assert await actor.hpa("m") is None
    cluster.put(HPA, {"metadata": {"name": "m"}, "spec": {"maxReplicas": 4}})
    found = await actor.hpa("m")
    assert found is not None and (found.low, found.high, found.current, found.desired) == (1, 4, 0, 0)
