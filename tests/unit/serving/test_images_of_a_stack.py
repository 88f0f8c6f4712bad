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
