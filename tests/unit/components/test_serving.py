"""A model on plain Kubernetes: what its pods look like."""

import json
from itertools import pairwise
from typing import Any

import pytest

from components.pd_serving import PdServing, PdServingArgs, deployment
from components.router import router_arguments
from components.serving_plan import EnginePlan, engine_plans, pod_security_level
from rules.engine import arguments
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from tests.unit.components.conftest import IMAGES


@pytest.fixture
def plans(dev: Settings, runtime: LocalRuntime) -> list[EnginePlan]:
    return engine_plans(dev, IMAGES, runtime, "dev")


def transfer(plan: EnginePlan) -> dict[str, Any]:
    args = arguments(plan.pod.launch)
    return json.loads(args[args.index("--kv-transfer-config") + 1])


def test_prefill_produces_and_decode_consumes_with_recompute_on_a_failed_load(plans: list[EnginePlan]):
    prefill, decode = plans
    assert transfer(prefill)["kv_role"] == "kv_producer"
    assert transfer(decode)["kv_role"] == "kv_consumer"
    assert {transfer(plan)["kv_load_failure_policy"] for plan in plans} == {"recompute"}


def test_sharers_have_one_cache_prefix_and_another_revision_has_another(
    dev: Settings, runtime: LocalRuntime, plans: list[EnginePlan]
):
    prefixes = {plan.pod.launch.cache_prefix for plan in plans}
    assert len(prefixes) == 1
    other = runtime.model_copy(
        update={"models": {"dev-wide": runtime.models["dev-wide"].model_copy(update={"revision": "b" * 64})}}
    )
    changed = engine_plans(dev, IMAGES, other, "dev")
    assert prefixes.isdisjoint(plan.pod.launch.cache_prefix for plan in changed)
    assert plans[0].pod.launch.path != changed[0].pod.launch.path


def test_a_warm_or_other_pool_never_shares_a_selector(plans: list[EnginePlan]):
    assert plans[0].selector != plans[1].selector
    assert all(plan.selector.items() <= plan.labels.items() for plan in plans)


def test_the_grace_period_covers_prestop_and_the_longest_request(declare_stack: Any, plans: list[EnginePlan]):
    seen: list[Any] = []
    declare_stack(lambda context: seen.append(deployment(plans[0], context)))
    pod = seen[0]["spec"]["template"]["spec"]
    engine = pod["containers"][0]
    longest = plans[0].model.longest_request_seconds
    assert pod["terminationGracePeriodSeconds"] >= longest + engine["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert engine["args"][engine["args"].index("--shutdown-timeout") + 1] == str(longest)


def test_dev_asks_for_the_same_chips_as_production(declare_stack: Any, dev: Settings, plans: list[EnginePlan]):
    args = PdServingArgs(model=dev.models[0], engines=tuple(plans), scaled=False)
    recorder = declare_stack(lambda context: PdServing("dev-wide", args, context))
    deployments = recorder.created("Deployment")
    limits = {
        name: spec["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        for name, spec in deployments.items()
    }
    assert limits["dev-wide-prefill-ascend"]["huawei.com/Ascend910"] == "8"
    assert limits["dev-wide-decode-ascend"]["huawei.com/Ascend910"] == "4"


def test_a_folder_of_the_host_needs_the_privileged_level(plans: list[EnginePlan]):
    assert pod_security_level(plans) == "privileged"


def test_the_router_selects_routed_pods_of_both_roles_and_may_only_watch_pods(
    declare_stack: Any, dev: Settings, plans: list[EnginePlan]
):
    args = PdServingArgs(model=dev.models[0], engines=tuple(plans), scaled=False)
    recorder = declare_stack(lambda context: PdServing("dev-wide", args, context))
    router = recorder.created("Deployment")["dev-wide-router"]["spec"]["template"]["spec"]["containers"][0]["args"]
    position = router.index("--prefill-selector")
    assert set(router[position + 1 : position + 4]) == {
        "moonstack.dev/model=dev-wide",
        "moonstack.dev/role=prefill",
        "moonstack.dev/routed=true",
    }
    assert recorder.created("Role")["dev-wide-router"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    ]


def test_a_router_stays_until_its_name_is_forgotten_and_the_longest_stream_through_it_may_have_ended(
    declare_stack: Any, dev: Settings, plans: list[EnginePlan]
):
    args = PdServingArgs(model=dev.models[0], engines=tuple(plans), scaled=False)
    recorder = declare_stack(lambda context: PdServing("dev-wide", args, context))
    pod = recorder.created("Deployment")["dev-wide-router"]["spec"]["template"]["spec"]
    stays = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert dev.models[0].longest_request_seconds + 30 + 5 < stays < pod["terminationGracePeriodSeconds"]


def test_a_router_leaves_a_failing_engine_out_in_time_but_forgives_one_late_answer(dev: Settings):
    args = router_arguments(dev.models[0], "here")
    flags = dict(pairwise(args))
    period, failures = int(flags["--health-check-interval-secs"]), int(flags["--health-failure-threshold"])
    assert failures > 1, "one late answer of a busy engine must not stop a model"
    assert period * failures < 3, "an engine whose core died refuses for about 3 s before it is gone"
