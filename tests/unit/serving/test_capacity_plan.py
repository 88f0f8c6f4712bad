"""Pods and chips at least, to start with and at most: one count for the settings' checks, the bill, quotas, scalers and a rehearsal."""

from dataclasses import replace
from typing import Any

import pytest

from capacity.config import ControllerConfig
from components.kthena.autoscaling import autoscaling_objects
from components.kthena.serving import model_serving
from components.pd_serving import deployment
from components.scaling.hpa import engine_hpa
from components.serving_plan import EnginePlan, engine_plans
from local.rehearse.expand import pods_of
from local.rehearse.nodes import PREFIX
from local.rehearse.report import pool_reports
from settings.capacity_plan import costs, role_plans
from settings.settings import Settings
from smoke.preflight.checks import judge
from tests.unit.components.conftest import IMAGES, ROOT
from tests.unit.serving.stacks import problems, stack
from tests.unit.serving.test_kthena_objects import CONTEXT
from tests.unit.smoke.test_preflight import complete

PROD = Settings.from_stack_file(ROOT / "Pulumi.prod.yaml")
BY_HAND = {
    # role on pool: pods at least, to start with, at most; two Kthena groups of 2 to 12 engines a role
    ("prefill", "npu-compute"): (2 * 2, 2 * 10, 2 * 12),
    ("decode", "npu-memory"): (2 * 2, 2 * 10, 2 * 12),
    ("prefill", "h100"): (2, 12, 12),
    ("decode", "h100"): (2, 12, 12),
    ("serve", "a100"): (2, 24, 28),
}


def test_prod_has_the_pods_that_one_counts_by_hand():
    plans = {(plan.role, plan.placement.pool): (plan.low, plan.declared, plan.high) for plan in role_plans(PROD)}
    assert plans == BY_HAND


def test_prod_costs_what_one_counts_by_hand():
    """Yuan an hour: 910B 12, H100 45, A100 25; 8 and 4 chips a pod on Ascend, 2 on H100, 1 on A100."""
    assert costs(PROD) == {
        "minimum": 2 * 2 * (8 + 4) * 12 + 2 * 2 * 2 * 45 + 2 * 25,
        "declared": 2 * 10 * (8 + 4) * 12 + 2 * 12 * 2 * 45 + 24 * 25,
        "maximum": 2 * 12 * (8 + 4) * 12 + 2 * 12 * 2 * 45 + 28 * 25,
        "warmPool": 0,
        "warmPoolPerMonth": 0,
    }


def test_the_objects_of_prod_ask_for_as_many_chips_and_cost_as_much_as_the_plan_says():
    plans = engine_plans(PROD, IMAGES, None, "prod")
    reports = {report.pool: report for report in pool_reports(PROD, placed(plans))}
    chips: dict[str, int] = {}
    for plan in role_plans(PROD):
        pool = plan.placement.pool
        chips[pool] = chips.get(pool, 0) + plan.declared * plan.placement.chips
    assert {pool: report.used for pool, report in reports.items()} == chips
    assert chips == {"npu-compute": 160, "npu-memory": 80, "h100": 48, "a100": 24}
    assert sum(report.cost_per_hour for report in reports.values()) == costs(PROD)["declared"]


@pytest.mark.parametrize(
    "engines", [{}, {"maxReplicas": 11, "roles": {"serve": {"minReplicas": 3, "maxReplicas": 28}}}]
)
def test_scalers_and_floors_have_the_bounds_of_the_plan(engines: dict[str, Any]):
    scaling = PROD.autoscaling.engines.model_validate(engines)
    settings = PROD.model_copy(update={"autoscaling": PROD.autoscaling.model_copy(update={"engines": scaling})})
    bounds = {(plan.role, plan.placement.pool): (plan.least, plan.most) for plan in role_plans(settings)}
    floors = ControllerConfig.from_settings(settings)
    for plan in engine_plans(settings, IMAGES, None, "prod"):
        expected = bounds[plan.role, plan.pool.name]
        if plan.model.backend == "native":
            spec = engine_hpa(plan, settings, CONTEXT)["spec"]
            assert (spec["minReplicas"], spec["maxReplicas"]) == expected
            assert (floors.target(plan.name).low, floors.target(plan.name).high) == expected
        else:
            objects = [each.manifest() for each in autoscaling_objects(plan.model, scaling, "0.4", CONTEXT)]
            targets = [each["spec"]["homogeneousTarget"] for each in objects if "homogeneousTarget" in each["spec"]]
            assert [(one["minReplicas"], one["maxReplicas"]) for one in targets] == [expected] * 2


def test_a_floor_stays_within_its_scaler_though_the_stack_starts_with_more():
    """The API server refuses an HPA whose minReplicas pass its maxReplicas."""
    values = stack()
    values["autoscaling"]["engines"] = {"enabled": True, "minReplicas": 1, "maxReplicas": 1}
    values["models"][1]["decode"]["replicas"] = 3
    settings = Settings.from_mapping(values)
    plan = next(each for each in role_plans(settings) if (each.model.name, each.role) == ("small", "decode"))
    assert (plan.most, plan.high) == (1, 3)
    target = next(each for each in ControllerConfig.from_settings(settings).targets if each.role == "decode")
    assert target.high == 1


@pytest.mark.parametrize("scaled", [True, False])
def test_chips_of_all_groups_and_nodes_must_exist(scaled: bool):
    values = stack()
    values["autoscaling"]["engines"] = {"enabled": scaled, "minReplicas": 1, "maxReplicas": 1}
    values["models"][0] |= {"groups": 2}
    values["models"][0]["prefill"] |= {"nodes": 2}
    assert any("4×8 + 2×4 = 40 chips" in line for line in problems(values))


def test_a_quota_is_held_against_the_chips_of_all_groups():
    values = stack()
    values["nodePools"][0]["count"] = 16
    values["models"][0] |= {"groups": 3}
    settings = Settings.from_mapping(values)
    for hard, expected in ((3 * 12, False), (3 * 12 - 1, True)):
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.huawei.com/Ascend910": str(hard)}}}
        found = judge(settings, replace(complete(), quotas=(quota,)))
        assert any(each.id == "quota" for each in found) is expected


def placed(plans: list[EnginePlan]) -> list[dict[str, Any]]:
    """The pods of the stack's own objects, each on a node of its own."""
    pods: list[dict[str, Any]] = []
    for model in PROD.models:
        mine = [plan for plan in plans if plan.model is model]
        if model.backend == "kthena":
            pods += pods_of(model_serving(model, mine, PROD.kthena, CONTEXT).manifest())
            continue
        for plan in mine:
            spec = deployment(plan, CONTEXT)["spec"]
            pods += [{"spec": dict(spec["template"]["spec"])} for _ in range(spec["replicas"])]
    pools = {pool.name: pool for pool in PROD.node_pools}
    taken: dict[str, int] = {}
    for pod in pods:
        name = pod["spec"]["nodeSelector"]["moonstack.dev/pool"]
        pod["spec"]["nodeName"] = f"{PREFIX}{name}-{taken.get(name, 0) % pools[name].count}"
        taken[name] = taken.get(name, 0) + 1
    return pods
