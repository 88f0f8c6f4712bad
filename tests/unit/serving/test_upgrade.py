"""A changed stack: what rolls, what is made anew, what becomes of the cache, and whether the pools have room."""

from collections.abc import Callable
from typing import Any

import pytest

from components.pods.engine import engine_template
from components.serving_plan import EnginePlan, engine_plans
from rules.placement import Demand
from rules.upgrade import PoolSize, missing_nodes, rollout
from settings.settings import Settings
from settings.upgrade import Step, rollouts, steps, told
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import stack

POOL = PoolSize("gpu", 2, 8)
MINE = [Demand("prefill", "gpu", 2, 2), Demand("decode", "gpu", 1, 4)]


def with_images() -> dict[str, Any]:
    values = stack()
    values["cluster"] |= {"kubeconfig": None, "images": {name: f"example.com/{name}:1" for name in IMAGES}}
    return values


def consequences(change: Callable[[dict[str, Any]], Any]) -> list[Step]:
    before, after = with_images(), with_images()
    change(after)
    return steps(Settings.from_mapping(before), Settings.from_mapping(after))


def small(values: dict[str, Any]) -> dict[str, Any]:
    return values["models"][1]


def test_one_pod_more_of_each_role_needs_its_chips_and_both_sets_need_them_twice():
    other = Demand("other", "gpu", 1, 1)
    roomy = rollout(MINE, MINE, [POOL], "native")
    assert (roomy.way, roomy.blue_green) == ("surge", True)
    tight = rollout(MINE, [*MINE, other], [POOL], "native")
    assert (tight.way, tight.blue_green, tight.missing_for_blue_green) == ("surge", False, {"gpu": 1})
    full = rollout(MINE, [*MINE, Demand("other", "gpu", 1, 8)], [POOL], "native")
    assert (full.way, full.missing) == ("stuck", {"gpu": 1})


def test_a_pod_is_never_split_over_nodes():
    """15 of 16 chips are enough in sum, and three pods of 5 want three nodes of 8."""
    assert missing_nodes([Demand("large", "gpu", 3, 5)], [POOL]) == {"gpu": 1}
    assert missing_nodes([Demand("large", "gpu", 2, 5), Demand("small", "gpu", 2, 3)], [POOL]) == {}


@pytest.mark.parametrize(("groups", "way"), [(1, "interrupts"), (2, "groups")])
def test_kthena_changes_whole_groups_and_the_only_one_interrupts(groups: int, way: str):
    found = rollout(MINE, MINE, [POOL], "kthena", groups)
    assert found.way == way
    assert "prefill and decode together" in told(found) or "the channel carries" in told(found)


def test_the_room_of_a_stack_is_that_of_its_pools():
    found = rollouts(Settings.from_mapping(stack()))
    assert (found["big"].way, found["big"].blue_green) == ("interrupts", True)
    assert (found["small"].way, found["small"].blue_green) == ("surge", True)
    values = stack()
    values["nodePools"][1] |= {"count": 1}
    small(values)["decode"] |= {"chips": 4, "tensorParallel": 4}
    small(values)["prefill"] |= {"chips": 4, "tensorParallel": 4}
    assert rollouts(Settings.from_mapping(values))["small"].way == "stuck"


def test_an_unchanged_stack_and_other_replicas_change_no_engine():
    assert consequences(lambda values: None) == []
    assert consequences(lambda values: small(values)["decode"].update(replicas=3)) == []


def test_new_weights_start_with_an_empty_cache_and_other_sizes_keep_it():
    [step] = consequences(lambda values: small(values)["weights"].update(revision="f" * 16))
    assert step.subject == "small" and step.change == "weights" and not step.fails
    assert "one pod of each role" in step.consequence and "cache starts empty" in step.consequence
    [step] = consequences(lambda values: small(values)["decode"].update(cpu="3"))
    assert step.change == "size of its pods" and "its cache stays" in step.consequence


def test_a_rollout_that_finds_no_chips_fails_before_anything_is_applied():
    def without_room(values: dict[str, Any]) -> None:
        values["nodePools"][1]["count"] = 1
        for role in ("prefill", "decode"):
            small(values)[role] |= {"chips": 4}

    before, after = with_images(), with_images()
    without_room(before)
    without_room(after)
    small(after)["engine"] = {"maxModelLen": 2048}
    [step] = steps(Settings.from_mapping(before), Settings.from_mapping(after))
    assert step.fails and "lacks 1 node of pool gpu" in step.consequence


def test_a_new_engine_image_rolls_the_models_that_run_it():
    [step] = consequences(lambda values: values["cluster"]["images"].update({"engine-ascend": "example.com/e:2"}))
    assert (step.subject, step.change) == ("big", "engine image")


def test_another_mooncake_empties_the_store_and_restarts_no_engine():
    [step] = consequences(lambda values: values["cluster"]["images"].update(mooncake="example.com/mooncake:2"))
    assert step.subject == "kvStore" and "cache starts empty" in step.consequence


def with_store_pods(values: dict[str, Any]) -> None:
    values["kvStore"]["storePods"] = {"segment": "8Gi", "pool": "gpu"}


def test_store_pods_change_the_engines_that_lend_nothing_from_then_on():
    before, after = with_images(), with_images()
    for values in (before, after):
        values["nodePools"][1]["rdmaResource"] = "rdma/shared"
    with_store_pods(after)
    found = {step.subject: step.change for step in steps(Settings.from_mapping(before), Settings.from_mapping(after))}
    assert found == {"small": "kvStore", "kvStore": "storePods"}


def test_engines_with_other_names_need_the_chips_of_both_sets():
    def move(values: dict[str, Any]) -> None:
        values["nodePools"].append(values["nodePools"][1] | {"name": "other", "count": 1})
        small(values)["decode"]["pool"] = "other"

    [step] = consequences(move)
    assert "made first and the old ones deleted last" in step.consequence and not step.fails
    before, after = with_images(), with_images()
    for values in (before, after):
        values["nodePools"][1]["count"] = 2
        for role in ("prefill", "decode"):
            small(values)[role] |= {"chips": 8}
    small(after)["backend"] = "kthena"
    found = steps(Settings.from_mapping(before), Settings.from_mapping(after))
    assert [step.subject for step in found if step.fails] == ["small"]
    assert "lack 2 nodes of pool gpu" in found[0].consequence


def test_kthena_1_0_makes_no_engine_anew():
    [step] = consequences(lambda values: values.update(kthena={"release": "1.0"}))
    assert step.subject == "kthena" and "no engine restarts" in step.consequence


def test_models_come_and_go():
    def swap(values: dict[str, Any]) -> None:
        small(values)["name"] = "other"

    assert {(step.subject, step.change) for step in consequences(swap)} == {("other", "new"), ("small", "removed")}


def test_a_changed_router_drains():
    [step] = consequences(lambda values: small(values).update(router={"replicas": 3}))
    assert step.change == "router" and "no request is lost" in step.consequence


ROLLING: dict[str, Callable[[dict[str, Any]], Any]] = {
    "weights": lambda values: small(values)["weights"].update(revision="f" * 16),
    "engine": lambda values: small(values).update(engine={"maxNumSeqs": 7}),
    "connector": lambda values: small(values).update(connector="mooncake-store"),
    "sizes": lambda values: small(values)["decode"].update(memory="40Gi"),
    "store": lambda values: values["kvStore"].update(segment="2Gi"),
    "store's device": lambda values: values["kvStore"].update(device="mlx5_0"),
    "no store": lambda values: values["kvStore"].update(enabled=False),
    "election": lambda values: values.update(
        kvStore=values["kvStore"] | {"ha": {"etcd": ["etcd.example:2379"]}}, network={"etcd": ["10.0.0.0/24"]}
    ),
    "taints": lambda values: values["nodePools"][0].update(tolerations=[{"key": "example/npu"}]),
    "RDMA": lambda values: values["nodePools"][1].update(rdmaResource="rdma/shared"),
    "more nodes": lambda values: values["nodePools"][1].update(count=9),
    "longest request": lambda values: small(values).update(longestRequestSeconds=77),
    "priority": lambda values: small(values).update(priority="high"),
    "replicas": lambda values: small(values)["decode"].update(replicas=2),
    "router": lambda values: small(values).update(router={"policy": "random"}),
    "lease": lambda values: values["kvStore"].update(leaseTtlMs=20_000),
    "Kthena": lambda values: values.update(kthena={"release": "1.0"}),
}


@pytest.mark.parametrize("name", ROLLING)
def test_what_is_said_to_roll_is_what_has_another_pod_template(name: str):
    """The plan and the components agree: a model is said to change exactly where one of its pod templates does."""
    before, after = with_images(), with_images()
    ROLLING[name](after)
    first, second = Settings.from_mapping(before), Settings.from_mapping(after)
    changed = {model.name for model in second.models if templates(first, model.name) != templates(second, model.name)}
    said = {step.subject for step in steps(first, second) if step.consequence.startswith("engines change")}
    assert said == changed


def templates(settings: Settings, model: str) -> list[Any]:
    plans: list[EnginePlan] = engine_plans(settings, IMAGES, None, "pre")
    return [engine_template(p.pod, p.labels, p.store_digest) for p in plans if p.model.name == model]
