"""A stack that doesn't use the local images names a reference for each image that it runs, and each runs on its nodes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules.chips import engine_chip
from rules.connectors import joins_store
from rules.problem import Problem
from rules.versions import runs_on
from settings.placed import placed

if TYPE_CHECKING:
    from settings.settings import Settings


def images_are_given(settings: "Settings") -> list[Problem]:
    """Every image that some pod of the stack runs has a reference; in prod it is pinned by digest."""
    images = settings.cluster.images
    if not isinstance(images, dict):
        if settings.cluster.kubeconfig == "local":
            return []
        fix = "give a reference for each image; `make images` prints them"
        return [Problem("cluster.images", "local", "the local images exist on the local cluster alone", fix)]
    problems = [
        Problem(f"cluster.images.{name}", None, f"is required: {why}", "add it; `make images` prints the references")
        for name, why in needed_images(settings).items()
        if name not in images
    ]
    if settings.environment == "prod":
        problems += [
            Problem(f"cluster.images.{name}", reference, "must be pinned by digest in prod", "append @sha256:…")
            for name, reference in images.items()
            if "@sha256:" not in reference
        ]
    return problems


def needed_images(settings: "Settings") -> dict[str, str]:
    """Image name → why the stack runs it."""
    needed = {"gateway": "the gateway", "capacity": "the capacity controller and the key agent"}
    for index, model in enumerate(settings.models):
        if model.backend == "native":
            needed["router"] = f"model {model.name} is served natively"
        for each in placed(settings, index):
            chip = engine_chip(each.member.chip.id, model.engine.build)
            if chip.engine_image:
                needed[chip.engine_image] = f"model {model.name} runs on {chip.title}"
            if joins_store(model.connector, chip, settings.kv_store.enabled):
                needed["mooncake"] = f"model {model.name} shares KV through the store"
    return needed


def images_run_on_their_nodes(settings: "Settings") -> list[Problem]:
    """Engines and store pods are placed on nodes for whose architecture their image exists."""
    problems = []
    for index, model in enumerate(settings.models):
        for each in placed(settings, index):
            image = engine_chip(each.member.chip.id, model.engine.build).engine_image
            if image:
                problems += runs_on(f"{each.member.path}.pool", each.pool.name, each.pool.arch, image)
    pods = settings.kv_store.store_pods
    pool = next((pool for pool in settings.node_pools if pods and pool.name == pods.pool), None)
    return [*problems, *(runs_on("kvStore.storePods.pool", pool.name, pool.arch, "mooncake") if pool else ())]


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (images_are_given, images_run_on_their_nodes)
