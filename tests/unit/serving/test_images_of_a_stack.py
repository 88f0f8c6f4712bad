"""Which images a stack must name."""

from dataclasses import replace
from typing import Any

from components.context import Context
from components.priorities import Priorities
from components.serving import serve
from components.serving_plan import engine_plans
from settings.checks.images import needed_images
from settings.settings import Settings
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.stacks import accepted, problems, refused, stack

NEEDED = ("gateway", "capacity", "router", "mooncake", "engine-ascend", "engine-nvidia")


def with_images(**more: Any) -> dict[str, Any]:
    values = stack()
    values["cluster"] |= {"kubeconfig": None, "images": {name: f"example.com/{name}:1" for name in NEEDED} | more}
    return values


def test_a_stack_names_every_image_that_it_runs():
    assert accepted(with_images())
    assert set(needed_images(Settings.from_mapping(stack()))) == set(NEEDED)
    for name in NEEDED:
        values = with_images()
        del values["cluster"]["images"][name]
        assert refused(values, f"cluster.images.{name}", "is required")


def test_local_images_are_for_the_local_cluster():
    values = stack()
    values["cluster"]["kubeconfig"] = None
    assert refused(values, "cluster.images", "local cluster alone")


def test_images_of_prod_are_pinned_by_digest():
    values = with_images()
    values["environment"] = "prod"
    assert sum("must be pinned by digest" in line for line in problems(values)) == len(NEEDED)
    pinned = {name: f"example.com/{name}:1@sha256:{'a' * 64}" for name in NEEDED}
    values["cluster"]["images"] = pinned
    assert accepted(values)


def test_every_pod_pulls_with_the_registrys_secret(declare_stack: Any):
    settings = Settings.from_mapping(stack())
    plans = engine_plans(settings, IMAGES, None, "pre")

    def declare_all(context: Context) -> None:
        secret = replace(context, image_pull_secret="registry")
        for model in settings.models:
            serve(model, plans, settings, secret)
        Priorities("priorities", secret)

    recorder = declare_stack(declare_all)
    deployments = recorder.created("Deployment")
    pods = [each["spec"]["template"]["spec"] for each in deployments.values()]
    pods += [
        role["entryTemplate"]["spec"]
        for serving in recorder.created("ModelServing").values()
        for role in serving["spec"]["template"]["roles"]
    ]
    assert len(pods) == 5
    assert all(pod["imagePullSecrets"] == [{"name": "registry"}] for pod in pods)


def test_an_engine_whose_parts_do_not_exist_for_the_nodes_architecture_is_refused():
    """Ascend hosts are mostly arm64, and the CPU engine's wheels are for amd64."""
    values = stack()
    assert values["nodePools"][0]["arch"] == "arm64" and accepted(values), "the Ascend engine exists for both"
    model = values["models"][1]
    model |= {"connector": "none", "shape": "aggregated", "serve": model.pop("prefill") | {"pool": "npu"}}
    del model["decode"]
    model["engine"] = {"build": "cpu", "blockSize": 128}
    assert refused(values, "models[1].serve[0].pool", "nodes are arm64", "engine-cpu exist for amd64")
    values["nodePools"][0]["arch"] = "amd64"
    assert accepted(values)


def test_store_pods_run_where_mooncake_exists():
    values = stack()
    del values["models"][0]
    values["kvStore"] = {"storePods": {"segment": "1Gi", "pool": "riscv"}}
    assert refused(values, "kvStore.storePods.pool", "nodes are riscv64", "mooncake exist for amd64, arm64")
    values["kvStore"]["storePods"]["pool"] = "edge"
    assert accepted(values)
