"""A thousand broken stack files: each is answered with clear lines or is valid after all; none ends in a traceback."""

import copy
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kthena.autoscaling import autoscaling_objects
from components.kthena.networking import model_route, model_server
from components.kthena.serving import model_serving
from components.kv_store import KvStoreArgs, engine_store_config, store_pods
from components.pods.engine import engine_template
from components.pods.store import store_deployment
from components.router import router_arguments
from components.serving_plan import engine_plans
from settings.errors import SettingsError
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from settings.sharing import store_protocols
from tests.unit.components.conftest import IMAGES
from tests.unit.serving.test_kthena_objects import CONTEXT

ROOT = Path(__file__).parents[3]
STACKS = ("dev", "pre", "prod")
MUTATIONS = 1000
ODD: tuple[Any, ...] = (
    None, "", " ", "x" * 300, "ключ", "a\nb", 0, -1, 1, 3.5, 10**12, float("nan"), float("inf"), True, [], {}, [None],
    {"x": 1}, ["a", "a"], "1Gi", "-5", "0", "1e3", "../..", "s3://", "{}", "null", "2020-01-01", 2**70, "\x00",
)  # fmt: skip


@cache
def groups(stack: str) -> dict[str, Any]:
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    return {key.removeprefix("moonstack:"): value for key, value in config.items()}


def mutated(seed: int) -> dict[str, Any]:
    """One to three changes at random places of a stack: a value, a key, a missing part or a doubled one."""
    pick = random.Random(seed)
    values = copy.deepcopy(groups(pick.choice(STACKS)))
    for _ in range(pick.randint(1, 3)):
        _change(values, pick)
    return values


def _change(values: dict[str, Any], pick: random.Random) -> None:
    parent, key = pick.choice(list(_places(values)))
    kind = pick.choice(("replace", "replace", "remove", "rename", "double", "swap"))
    if kind == "replace":
        parent[key] = pick.choice(ODD)
    elif kind == "remove":
        del parent[key]
    elif kind == "rename" and isinstance(parent, dict):
        parent[f"{key}{pick.choice('xs')}"] = parent.pop(key)
    elif kind == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    else:
        other, place = pick.choice(list(_places(values)))
        parent[key] = copy.deepcopy(other[place])


def _places(value: Any):
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])


@pytest.mark.parametrize("block", range(10))
def test_every_mutated_stack_file_is_answered_with_clear_lines(block: int):
    refused = 0
    for seed in range(block * MUTATIONS // 10, (block + 1) * MUTATIONS // 10):
        try:
            Settings.from_mapping(mutated(seed))
        except SettingsError as error:
            refused += 1
            for problem in error.problems:
                line = problem.line()
                assert "\n" not in line and len(line) < 1000, (seed, line)
                assert line.startswith("moonstack:"), (seed, line)
                assert problem.limit and problem.fix, (seed, line)
                assert not any(
                    word in line for word in ("Error", "pydantic", "valid dictionary", "valid tuple", "[str")
                ), (seed, line)
    assert refused > MUTATIONS // 10 * 0.6, "most mutations must be refused, else this test proves little"


def gentle(seed: int) -> dict[str, Any]:
    """A stack with one plausible change: a number within reach, a choice or a switch, so that many stay valid."""
    pick = random.Random(seed)
    values = copy.deepcopy(groups(pick.choice(STACKS)))
    model = pick.choice(values["models"])
    role = pick.choice([each for each in ("prefill", "decode", "serve") if each in model])
    pick.choice(
        (
            lambda: model[role].update(replicas=pick.randint(1, 3), chips=pick.choice((1, 2, 4, 8))),
            lambda: model.update(
                connector=pick.choice(("mooncake-store", "ascend-store", "nixl", "mooncake-v1", "none"))
            ),
            lambda: model.update(backend=pick.choice(("native", "kthena"))),
            lambda: model.setdefault("engine", {}).update(blockSize=pick.choice((16, 128)), quantization="fp8"),
            lambda: model[role].update(nodes=2),
            lambda: values.setdefault("kvStore", {}).update(enabled=False),
            lambda: values.setdefault("kvStore", {}).update(protocol=pick.choice(("tcp", "rdma", "ascend"))),
            lambda: values.setdefault("kvStore", {}).update(
                protocol=pick.choice(("tcp", "rdma", "ascend")),
                storePods={"segment": pick.choice(("1Gi", "64Gi")), "replicas": pick.randint(1, 9)},
            ),
            lambda: values.update(kthena={"release": pick.choice(("0.4", "1.0")), "topologyTier": 1}),
            lambda: model.update(priority=pick.choice(("low", "high")), prePull=True, longestRequestSeconds=30),
        )
    )()
    return values


def test_whatever_is_accepted_can_be_built(runtime: LocalRuntime):
    """No setting passes validation and then breaks a builder: pods, Kthena's objects and stores of every accepted stack."""
    built = held = 0
    for values in (*map(mutated, range(300)), *map(gentle, range(400))):
        try:
            settings = Settings.from_mapping(values)
            plans = engine_plans(settings, IMAGES, runtime, "any")
        except SettingsError:
            continue
        built += 1
        for protocol in store_protocols(settings):
            args = KvStoreArgs.of(settings, protocol)
            assert engine_store_config(args, "any")["protocol"] == protocol
            if (pods := store_pods(args, "any")) is not None:
                assert store_deployment(pods, CONTEXT)["spec"]["replicas"] == pods.settings.replicas
                held += 1
        for plan in plans:
            assert engine_template(plan.pod, plan.labels, plan.store_digest)["spec"]["containers"]
        for model in settings.models:
            if model.backend == "kthena":
                mine = [plan for plan in plans if plan.model is model]
                model_serving(model, mine, settings.kthena, CONTEXT).manifest()
                model_server(model, settings.kthena, CONTEXT).manifest()
                model_route(model, CONTEXT).manifest()
                autoscaling_objects(model, settings.autoscaling.engines, settings.kthena.release, CONTEXT)
            else:
                router_arguments(model, settings.cluster.namespace)
    assert built > 100 and held
