"""A model that changes as a whole: its sets' names and labels, what makes another set, and who can't have one."""

from collections.abc import Callable
from typing import Any

import pytest

from components.pd_serving import PdServing, PdServingArgs
from components.router import router_arguments
from components.serving_plan import EnginePlan, engine_plans
from rules import labels, names, timing
from rules.placement import Demand
from rules.upgrade import PoolSize, rollout
from settings.settings import Settings
from settings.upgrade import rollouts, steps, told
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import accepted, problems, refused, stack


def whole() -> dict[str, Any]:
    """Model `small` with two decode engines changes as a whole; 4 nodes of 8 GPUs."""
    values = stack()
    values["models"][1] |= {"rollout": "blueGreen", "decode": values["models"][1]["decode"] | {"replicas": 2}}
    return values


def small(values: dict[str, Any]) -> dict[str, Any]:
    return values["models"][1]


def plans(values: dict[str, Any]) -> list[EnginePlan]:
    found = engine_plans(Settings.from_mapping(values), IMAGES, None, "pre")
    return [plan for plan in found if plan.model.name == "small"]


def changed(change: Callable[[dict[str, Any]], Any]) -> list[EnginePlan]:
    values = whole()
    change(values)
    return plans(values)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "weights": lambda values: small(values)["weights"].update(revision="f" * 16),
    "engine version": lambda values: small(values).update(engine={"version": "0.30.0"}),
    "decode alone": lambda values: small(values)["decode"].update(cpu="3"),
    "store": lambda values: values["kvStore"].update(segment="2Gi"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_restarts_one_role_makes_another_set_of_all_roles(name: str):
    before, after = plans(whole()), changed(CHANGES[name])
    assert len({plan.set_id for plan in before}) == len({plan.set_id for plan in after}) == 1
    assert {plan.name for plan in before}.isdisjoint(plan.name for plan in after)
    for old in before:
        for new in after:
            assert not old.selector.items() <= new.labels.items() and not new.selector.items() <= old.labels.items()


def test_another_engine_image_makes_another_set():
    settings, images = Settings.from_mapping(whole()), IMAGES | {"engine-nvidia": "example.com/engine:2"}
    new = next(plan for plan in engine_plans(settings, images, None, "pre") if plan.model.name == "small")
    assert new.set_id != plans(whole())[0].set_id


def test_replicas_and_routers_leave_a_set_as_it_is():
    before = [(plan.name, plan.selector) for plan in plans(whole())]
    for change in (
        lambda values: small(values)["decode"].update(replicas=3),
        lambda values: small(values).update(router={"policy": "random", "replicas": 3}),
        lambda values: values["models"][0].update(engine={"maxNumSeqs": 7}),
    ):
        assert [(plan.name, plan.selector) for plan in changed(change)] == before


def test_a_model_that_rolls_pod_by_pod_has_no_set_in_names_or_labels():
    for plan in plans(stack()):
        assert plan.name == names.engine("small", plan.role, "gpu") and plan.set_id == ""
        assert labels.SET not in {**plan.labels, **plan.selector}


def test_the_routers_of_a_set_pick_its_own_engines_and_the_service_the_routers(declare_stack: Any):
    mine = plans(whole())
    args = PdServingArgs(model=mine[0].model, engines=tuple(mine), scaled=False)
    recorder = declare_stack(lambda context: PdServing("small", args, context))
    set_id = mine[0].set_id
    made = recorder.created("Deployment")
    assert made.keys() == {f"small-{part}-{set_id}" for part in ("prefill-gpu", "decode-gpu", "router")}
    router = made[f"small-router-{set_id}"]
    words = router["spec"]["template"]["spec"]["containers"][0]["args"]
    for role in ("prefill", "decode"):
        position = words.index(f"--{role}-selector")
        wanted = dict(word.split("=") for word in words[position + 1 : position + 5])
        engine = made[f"small-{role}-gpu-{set_id}"]["spec"]["template"]["metadata"]["labels"]
        assert wanted[labels.SET] == set_id and wanted.items() <= engine.items()
    pods = router["spec"]["template"]["metadata"]["labels"]
    service = recorder.created("Service")["small-router"]
    assert service["spec"]["selector"][labels.SET] == set_id
    assert service["spec"]["selector"].items() <= pods.items()
    assert set(recorder.created("ServiceAccount")) == {"small-router"}, (
        "its name stays, so old routers keep their rights"
    )
    budgets = recorder.created("PodDisruptionBudget")
    assert budgets.keys() == made.keys()
    assert {one["spec"]["selector"]["matchLabels"][labels.SET] for one in budgets.values()} == {set_id}


def test_a_router_without_a_set_names_none():
    model = plans(stack())[0].model
    assert not [word for word in router_arguments(model, "serving") if labels.SET in word]


def test_pulumi_waits_for_engines_and_routers_to_end_for_as_long_as_they_may_take():
    """A router sleeps for the longest request and more before it ends; Pulumi gives up after 600 s unless told otherwise."""
    longest = Settings.from_mapping(whole()).models[1].longest_request_seconds
    for grace in (timing.grace_seconds(longest), timing.router_grace_seconds(longest)):
        assert timing.removal_seconds(grace) > grace > 600


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values: small(values)["decode"].update(replicas=16), ("take 5 nodes of 8 chips; it has 4", "small")),
        (
            lambda values: values["nodePools"][1].update(cpu="5"),
            ("request 1.20 times the cpu", "4 × 5", "nodePools[1].cpu"),
        ),
        (lambda values: values["nodePools"][1].update(memory="40Gi"), ("request 1.20 times the memory", "4 × 40Gi")),
    ],
)
def test_a_pool_without_room_for_both_sets_is_refused_with_the_numbers(
    change: Callable[..., Any], words: tuple[str, ...]
):
    values = whole()
    change(values)
    assert refused(values, "models[1].rollout", "blueGreen", *words, "use rollout: surge")
    small(values)["rollout"] = "surge"
    assert accepted(values)


def test_models_that_one_image_changes_at_once_need_room_for_all_their_sets_at_once():
    values = whole()
    values["models"].append(small(values) | {"name": "twin"})
    values["nodePools"][1] |= {"cpu": "96", "memory": "1Ti"}
    for index in (1, 2):
        values["models"][index]["decode"] = values["models"][index]["decode"] | {"replicas": 7}
    assert accepted(values)
    values["nodePools"][1]["count"] = 3
    assert refused(values, "models[2].rollout", "small and twin", "take 4 nodes of 8 chips; it has 3")
    values["models"][2]["rollout"] = "surge"
    assert accepted(values)


def test_sets_are_for_native_models_of_a_fixed_size():
    values = whole()
    values["models"][0]["rollout"] = "blueGreen"
    assert refused(values, "models[0].rollout", "Kthena replaces whole groups", "groups: 2")
    values = whole()
    values["autoscaling"]["engines"] = {"enabled": True, "minReplicas": 1, "maxReplicas": 2}
    assert refused(values, "models[1].rollout", "autoscaling.engines is enabled", "use rollout: surge")
    values = whole()
    values["warmPool"] = {"enabled": True}
    assert any("warmPool is enabled" in line and "models[1].rollout" in line for line in problems(values))


def test_the_upgrade_says_that_the_new_set_comes_beside_the_old():
    values = whole()
    found = rollouts(Settings.from_mapping(values))["small"]
    assert found.way == "blueGreen" and "beside the old one" in told(found) and "goes last" in told(found)
    values["cluster"] |= {"kubeconfig": None, "images": {name: f"example.com/{name}:1" for name in IMAGES}}
    before = Settings.from_mapping(values)
    small(values)["weights"] = small(values)["weights"] | {"revision": "f" * 16}
    [step] = steps(before, Settings.from_mapping(values))
    assert "whole new set" in step.consequence and "cache starts empty" in step.consequence and not step.fails
    small(values)["rollout"] = "surge"
    [step] = steps(before, Settings.from_mapping(values))
    assert "rollout" in step.change and "made first and the old ones deleted last" in step.consequence


def test_a_set_that_finds_no_chips_beside_the_old_one_never_comes():
    mine = [Demand("prefill", "gpu", 2, 2), Demand("decode", "gpu", 1, 4)]
    pools = [PoolSize("gpu", 1, 8)]
    assert rollout(mine, mine, pools, "native", strategy="blueGreen").way == "stuck"
    assert rollout(mine, mine, [PoolSize("gpu", 2, 8)], "native", strategy="blueGreen").way == "blueGreen"
