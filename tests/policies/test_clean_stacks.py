"""No false positive: every object of the three stacks, on both backends, passes every rule."""

import json
import runpy
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.key_source import OFFLINE
from policies.catalogue import RULES
from policies.judge import judge
from policies.objects import Object
from policies.rule import Facts
from policies.shape import SHAPE_RULE
from settings.key_values.local import LocalKeys
from settings.local_runtime import FILE
from settings.settings import Settings
from tests.policies.builders import fake_key
from tests.unit.pulumi_engine import plain, run

ROOT = Path(__file__).parents[2]
IMAGES = ("gateway", "router", "mooncake", "capacity", "engine-cpu", "engine-ascend", "engine-nvidia")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A state directory as `make up` leaves it, and the environment of an offline verb."""
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    monkeypatch.setenv(OFFLINE, "1")
    for key_id in ("dev-client", "dev-smoke", "dev-limit"):
        LocalKeys().put(key_id, "current", fake_key())
    (tmp_path / "gateway").mkdir()
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / "gateway" / name).write_text(name)
    (tmp_path / "kubeconfig").write_text("{}")
    runtime = {
        "images": {name: f"localhost/moonstack/{name}:1" for name in IMAGES},
        "engine": {"hostPath": "/opt/engine", "mountPath": "/opt/engine", "command": ["vllm", "serve"]},
        "models": {"dev-wide": {"path": "/models/dev-wide", "revision": "a" * 64}},
    }
    (tmp_path / FILE).write_text(json.dumps(runtime))
    yield
    pulumi.runtime.set_all_config({}, [])


def values(stack: str, backend: str) -> dict[str, Any]:
    """A stack's configuration with every model on one backend, and placeholders for keys that aren't local."""
    config = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    groups = {key.removeprefix("moonstack:"): value for key, value in config.items()}
    if stack != "dev":
        groups["keys"] = groups["keys"] | {"source": "placeholder"}
    for model in groups["models"]:
        model["backend"] = backend
        if backend == "native" and model["connector"] == "mooncake-v1":
            model.pop("groups", None)
            model["connector"] = "ascend-store"  # natively a rollout would pair revisions with mooncake-v1
    return groups


@pytest.fixture
def ignored(monkeypatch) -> dict[tuple[str, str], tuple[str, ...]]:
    """ignoreChanges by type and name: the engine tells policies of it, the mocks don't."""
    seen: dict[tuple[str, str], tuple[str, ...]] = {}
    original = pulumi.Resource.__init__

    def recorded(self, t, name, custom, props=None, opts=None, *more, **named):
        seen[(t, name)] = tuple((opts.ignore_changes if opts else None) or ())
        original(self, t, name, custom, props, opts, *more, **named)

    monkeypatch.setattr(pulumi.Resource, "__init__", recorded)
    return seen


def declared(stack: str, groups: dict[str, Any], ignored: dict[tuple[str, str], tuple[str, ...]]) -> list[Object]:
    pulumi.runtime.set_all_config({f"moonstack:{key}": json.dumps(value) for key, value in groups.items()}, [])
    registered = run(lambda: runpy.run_path(str(ROOT / "__main__.py")), stack=stack)
    return [
        Object(plain(one.inputs), type=one.type, urn=f"urn::{one.name}", ignored=ignored.get((one.type, one.name), ()))
        for one in registered
    ]


@pytest.mark.parametrize("backend", ["native", "kthena"])
@pytest.mark.parametrize("stack", ["dev", "pre", "prod"])
def test_every_object_of_every_stack_passes_every_rule(stack, backend, ignored):
    groups = values(stack, backend)
    settings = Settings.from_mapping(groups)
    objects = declared(stack, groups, ignored)
    assert len(objects) > 30
    rendered = [Object(one.body) for one in objects if one.type.startswith("kubernetes:") and "kind" in one.body]
    assert len(rendered) > 30
    facts = Facts(settings.environment, settings)
    found = [*judge(RULES, objects, facts), *judge([SHAPE_RULE], rendered, facts)]
    assert found == [], "\n".join(f"{v.rule}: {v.object}: {v.path}: {v.message}" for v in found)


def test_pods_that_hold_the_store_pass_every_rule(ignored):
    groups = values("prod", "native")
    h100 = next(pool for pool in groups["nodePools"] if pool["name"] == "h100")
    h100["rdmaResource"] = "rdma/hca_shared_devices_a"
    groups["kvStore"]["storePods"] = {"segment": "128Gi", "pool": "h100"}
    settings = Settings.from_mapping(groups)
    objects = declared("prod", groups, ignored)
    assert "mooncake-store-rdma" in {one.name for one in objects if one.kind == "Deployment"}
    found = judge(RULES, objects, Facts(settings.environment, settings))
    assert found == [], "\n".join(f"{v.rule}: {v.object}: {v.path}: {v.message}" for v in found)
