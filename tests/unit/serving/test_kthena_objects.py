"""Kthena's objects: what the builders write, for both releases, held against the releases' own CRDs."""

from typing import Any, cast

import pytest
from pydantic import ValidationError

from components.context import Context
from components.kthena.autoscaling import autoscaling_objects
from components.kthena.component import KthenaServing, KthenaServingArgs
from components.kthena.crd.model_serving import ModelServing, TemplateMetadata
from components.kthena.networking import model_route, model_server
from components.kthena.serving import model_serving, restart_grace_seconds
from components.serving_plan import EnginePlan, engine_plans
from rules import kthena
from settings.autoscaling import EngineScaling
from settings.settings import Settings
from tests.unit.components.conftest import IMAGES
from tests.unit.serving import kthena_crds
from tests.unit.serving.stacks import stack

CONTEXT = Context(stack="pre", environment="pre", namespace="serving", provider=cast(Any, None), images=IMAGES)
RELEASES: tuple[kthena.Release, ...] = ("0.4", "1.0")


def built(values: dict[str, Any]) -> tuple[Settings, list[EnginePlan]]:
    settings = Settings.from_mapping(values)
    model = settings.models[0]
    return settings, [plan for plan in engine_plans(settings, IMAGES, None, "pre") if plan.model is model]


def serving(values: dict[str, Any]) -> ModelServing:
    settings, plans = built(values)
    return model_serving(settings.models[0], plans, settings.kthena, CONTEXT)


def variants() -> dict[str, dict[str, Any]]:
    plain, spread, aggregated, limited = stack(), stack(), stack(), stack()
    spread["models"][0]["prefill"]["nodes"] = 2
    spread["kthena"] = {"topologyTier": 2}
    model = aggregated["models"][0]
    model |= {"shape": "aggregated", "connector": "ascend-store", "serve": model.pop("prefill")}
    del model["decode"]
    limited["models"][1]["backend"] = "kthena"
    limited["models"][0] |= {
        "groups": 2,
        "route": {"weight": 90, "targets": [{"model": "small", "weight": 10}], "rateLimit": {"inputTokens": 1000}},
    }
    limited["kthena"] = {"scheduler": "default-scheduler", "gang": False}
    return {"plain": plain, "multi-node": spread, "aggregated": aggregated, "limited": limited}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("variant", variants())
def test_every_object_passes_the_releases_own_schema(release: kthena.Release, variant: str):
    values = variants()[variant]
    values.setdefault("kthena", {})["release"] = release
    settings, plans = built(values)
    model = settings.models[0]
    scaling = EngineScaling(implementation="kthena", decode_per_prefill=0.5)
    objects = [
        model_serving(model, plans, settings.kthena, CONTEXT),
        model_server(model, settings.kthena, CONTEXT),
        model_route(model, CONTEXT),
        *autoscaling_objects(model, scaling, release, CONTEXT),
    ]
    for each in objects:
        assert kthena_crds.errors(release, each.manifest()) == [], each.kind
        assert kthena.KINDS[release][each.kind] == each.api_version


def test_the_table_of_kinds_is_what_each_release_serves():
    for release in RELEASES:
        assert set(kthena.KINDS[release]) == kthena_crds.kinds(release) - {"ModelBooster"}


def test_scaling_of_0_4_is_refused_by_1_0():
    settings, _ = built(stack())
    old = autoscaling_objects(settings.models[0], EngineScaling(), "0.4", CONTEXT)
    assert all(kthena_crds.errors("1.0", each.manifest()) for each in old)
    assert all(kthena_crds.errors("0.4", each.manifest()) == [] for each in old)


def test_a_policy_of_0_4_comes_before_its_binding():
    settings, _ = built(stack())
    kinds = [each.kind for each in autoscaling_objects(settings.models[0], EngineScaling(), "0.4", CONTEXT)]
    assert kinds == ["AutoscalingPolicy", "AutoscalingPolicy", "AutoscalingPolicyBinding", "AutoscalingPolicyBinding"]


def test_every_default_that_matters_is_written_out():
    spec = serving(stack()).manifest()["spec"]
    assert spec["rolloutStrategy"] == {
        "type": "ServingGroupRollingUpdate",
        "rollingUpdateConfiguration": {"maxUnavailable": 1, "partition": 0},
    }
    assert spec["schedulerName"] == "volcano"
    assert spec["recoveryPolicy"] == "ServingGroupRecreate"
    assert [role["workerReplicas"] for role in spec["template"]["roles"]] == [0, 0]
    assert all("workerTemplate" not in role for role in spec["template"]["roles"])


def test_the_grace_period_outlasts_the_load():
    settings, plans = built(stack())
    grace = serving(stack()).spec.template.restart_grace_period_seconds
    assert grace == restart_grace_seconds(settings.models[0], plans)
    assert grace > max(plan.pod.load_seconds for plan in plans)


def test_prefill_asks_for_eight_chips_and_decode_for_four():
    roles = serving(stack()).manifest()["spec"]["template"]["roles"]
    chips = {
        role["name"]: role["entryTemplate"]["spec"]["containers"][0]["resources"]["limits"]["huawei.com/Ascend910"]
        for role in roles
    }
    assert chips == {"prefill": "8", "decode": "4"}


def test_an_engine_of_two_nodes_has_one_entry_and_one_headless_worker():
    values = variants()["multi-node"]
    prefill = serving(values).manifest()["spec"]["template"]["roles"][0]
    assert prefill["workerReplicas"] == 1
    entry = prefill["entryTemplate"]["spec"]["containers"][0]
    worker = prefill["workerTemplate"]["spec"]["containers"][0]
    assert entry["args"][entry["args"].index("--tensor-parallel-size") + 1] == "16"
    assert "--headless" in worker["args"] and "--headless" not in entry["args"]
    assert "$(ENTRY_ADDRESS)" in worker["args"] and "$(WORKER_INDEX)" in worker["args"]
    assert "readinessProbe" in entry and "readinessProbe" not in worker
    assert "moonstack.dev/routed" not in prefill["workerTemplate"]["metadata"]["labels"]
    server = model_server(Settings.from_mapping(values).models[0], Settings.from_mapping(values).kthena, CONTEXT)
    assert server.spec.workload_selector.match_labels[kthena.ENTRY_LABEL] == "true"


def test_server_route_and_serving_name_each_other():
    settings, plans = built(stack())
    model = settings.models[0]
    server, route = model_server(model, settings.kthena, CONTEXT), model_route(model, CONTEXT)
    name = serving(stack()).metadata["name"]
    assert server.spec.workload_selector.match_labels == {kthena.SERVING_LABEL: name}
    assert route.spec.rules[0].target_models[0].model_server_name == server.metadata["name"]
    assert route.spec.model_name == server.spec.model == model.name
    served = plans[0].pod.launch.model
    assert served == model.name
    group = server.spec.workload_selector.pd_group
    assert group is not None
    assert group.group_key == "modelserving.volcano.sh/group-name"
    assert group.prefill_labels == {"modelserving.volcano.sh/role": "prefill"}


@pytest.mark.parametrize(
    ("connector", "spoken"), [("mooncake-v1", "mooncake"), ("ascend-store", "http")]
)  # volcano-sh/kthena#503 and facts of its connectors: a store pair is `http`, a peer-to-peer pair its own dialogue
def test_the_routers_dialogue_follows_the_connector(connector: str, spoken: str):
    values = stack()
    values["models"][0]["connector"] = connector
    settings, _ = built(values)
    assert model_server(settings.models[0], settings.kthena, CONTEXT).spec.kv_connector.type == spoken


def test_traffic_policy_and_port_are_those_of_the_settings():
    values = stack()
    values["kthena"] = {"timeoutSeconds": 120, "retryAttempts": 5, "retryIntervalMs": 75}
    settings, _ = built(values)
    spec = model_server(settings.models[0], settings.kthena, CONTEXT).manifest()["spec"]
    assert spec["trafficPolicy"] == {"timeout": "120s", "retry": {"attempts": 5, "retryInterval": "75ms"}}
    assert spec["workloadPort"] == {"port": 8000, "protocol": "http"}


def test_a_template_can_not_overwrite_kthenas_labels():
    """volcano-sh/kthena, examples/kthena-router/ModelServing-ds1.5b-pd-disaggregation.yaml does, and breaks pairing."""
    with pytest.raises(ValidationError, match="belongs to Kthena"):
        TemplateMetadata(labels={"modelserving.volcano.sh/group-name": "mine"})


def test_decode_scales_on_a_ratio_below_one_and_prefill_on_the_queue():
    """llm deployments compared a ratio in 0 to 1 with 85: the target here is 850m."""
    settings, _ = built(stack())
    policy = autoscaling_objects(settings.models[0], EngineScaling(), "1.0", CONTEXT)[0].manifest()["spec"]
    roles = policy["disaggregatedTarget"]["roles"]
    assert {each["name"]: each["targetValue"] for each in roles["decode"]["metrics"]} == {
        "vllm:num_requests_waiting": "10000m",
        "vllm:kv_cache_usage_perc": "850m",
    }
    assert [each["name"] for each in roles["prefill"]["metrics"]] == ["vllm:num_requests_waiting"]


def test_pulumi_awaits_the_serving_and_leaves_scaled_replicas_alone(declare_stack: Any):
    settings, plans = built(stack())
    model = settings.models[0]
    args = KthenaServingArgs(
        model=model, engines=tuple(plans), kthena=settings.kthena, scaling=EngineScaling(implementation="kthena")
    )
    recorder = declare_stack(lambda context: KthenaServing(model.name, args, context))
    made = recorder.created("ModelServing")
    assert made["big"]["metadata"]["annotations"]["pulumi.com/waitFor"] == "condition=Available"
    assert recorder.created("AutoscalingPolicyBinding").keys() == {"big-prefill", "big-decode"}


@pytest.mark.parametrize(("release", "waits"), [("1.0", True), ("0.4", False)])
def test_a_scaler_is_awaited_where_the_release_gives_it_a_status(release: str, waits: bool, declare_stack: Any):
    recorder = scaled(declare_stack, {"release": release})
    policies = recorder.created("AutoscalingPolicy").values()
    assert policies
    assert {one["metadata"].get("annotations", {}).get("pulumi.com/waitFor") for one in policies} == {
        "condition=Ready" if waits else None
    }


def test_a_stack_that_awaits_nothing_of_kthena_does_not_await_its_scalers(declare_stack: Any):
    made = scaled(declare_stack, {"release": "1.0", "await": False}).created("AutoscalingPolicy")
    assert "pulumi.com/waitFor" not in made["big"]["metadata"].get("annotations", {})


def scaled(declare_stack: Any, kthena: dict[str, Any]) -> Any:
    settings, plans = built(stack() | {"kthena": kthena})
    args = KthenaServingArgs(
        model=settings.models[0], engines=tuple(plans), kthena=settings.kthena, scaling=EngineScaling()
    )
    return declare_stack(lambda context: KthenaServing("big", args, context))


@pytest.mark.parametrize(("groups", "nodes", "kept"), [(1, 1, None), (2, 1, 2), (3, 1, 4), (2, 2, 3)])
def test_one_group_may_be_taken_away_at_a_time(groups: int, nodes: int, kept: int | None, declare_stack: Any):
    """A group of one prefill engine on `nodes` nodes and one decode engine."""
    values = stack()
    values["models"][0]["groups"] = groups
    values["models"][0]["prefill"]["nodes"] = nodes
    values["nodePools"][0]["count"] = 20
    settings, plans = built(values)
    args = KthenaServingArgs(model=settings.models[0], engines=tuple(plans), kthena=settings.kthena)
    recorder = declare_stack(lambda context: KthenaServing("big", args, context))
    made = recorder.created("PodDisruptionBudget")
    assert [one["spec"]["minAvailable"] for one in made.values()] == ([kept] if kept else [])
    template = recorder.created("ModelServing")["big"]["spec"]["template"]["roles"][0]["entryTemplate"]
    for one in made.values():
        assert one["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_the_settings_of_kthena_reach_its_objects():
    values = stack()
    values["kthena"] = {"recovery": "RoleRecreate", "topologyTier": 3}
    values["models"][0]["groups"] = 2
    spec = serving(values).manifest()["spec"]
    assert spec["replicas"] == 2
    assert spec["recoveryPolicy"] == "RoleRecreate"
    assert spec["template"]["gangPolicy"] == {"minRoleReplicas": {"prefill": 1, "decode": 1}}
    assert spec["template"]["networkTopology"]["groupPolicy"] == {"mode": "hard", "highestTierAllowed": 3}
    values["kthena"] = {"gang": False}
    spec = serving(values).manifest()["spec"]
    assert spec["template"]["gangPolicy"] == {"minRoleReplicas": {"prefill": 0, "decode": 0}}, "left out, it means all"
    values["kthena"] = {"scheduler": "default-scheduler", "gang": False}
    spec = serving(values).manifest()["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert not {"gangPolicy", "networkTopology"} & spec["template"].keys()


def test_shares_and_limits_of_a_route_reach_the_router():
    settings = Settings.from_mapping(variants()["limited"])
    spec = model_route(settings.models[0], CONTEXT).manifest()["spec"]
    assert spec["rules"][0]["targetModels"] == [
        {"modelServerName": "big", "weight": 90},
        {"modelServerName": "small", "weight": 10},
    ]
    assert spec["rateLimit"] == {"inputTokensPerUnit": 1000, "unit": "minute"}


def test_a_stack_may_go_without_awaiting_kthena(declare_stack: Any):
    values = stack()
    values["kthena"] = {"await": False}
    settings, plans = built(values)
    args = KthenaServingArgs(model=settings.models[0], engines=tuple(plans), kthena=settings.kthena)
    made = declare_stack(lambda context: KthenaServing("big", args, context)).created("ModelServing")
    assert "pulumi.com/waitFor" not in made["big"]["metadata"].get("annotations", {})
