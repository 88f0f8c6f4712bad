"""Pulumi under mocks: every registration is recorded, each test on an event loop of its own."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi_kubernetes as kubernetes
import pytest
import yaml
from pulumi.runtime import mocks
from pulumi.runtime import settings as runtime_settings
from pulumi.runtime.stack import run_pulumi_func

from components.context import Context
from settings.local_runtime import LocalRuntime
from settings.settings import Settings

ROOT = Path(__file__).parents[3]
IMAGES = {
    name: f"localhost/moonstack/{name}:test"
    for name in ("gateway", "router", "mooncake", "capacity", "engine-cpu", "engine-ascend", "engine-nvidia")
}


@dataclass
class Recorder(mocks.Mocks):
    """What was registered: type, name and inputs, in order."""

    resources: list[mocks.MockResourceArgs] = field(default_factory=list)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.resources.append(args)
        return args.name, dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        return {}, None

    def created(self, kind: str) -> dict[str, dict[str, Any]]:
        """Inputs by name of the objects whose type ends with `kind`."""
        return {one.name: one.inputs for one in self.resources if one.typ.rpartition(":")[2] == kind}


@pytest.fixture
def declare_stack() -> Iterator[Callable[[Callable[[Context], Any]], Recorder]]:
    """Runs a function that declares resources and returns the recorder once everything is registered."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)

    def run(declare: Callable[[Context], Any]) -> Recorder:
        recorder = Recorder()
        mocks.set_mocks(recorder, project="moonstack", stack="dev")

        def program() -> None:
            declare(context())

        loop.run_until_complete(run_pulumi_func(program))
        return recorder

    yield run
    loop.close()
    runtime_settings.reset_options()


def context() -> Context:
    """A context with a provider, for tests inside `declare_stack`."""
    return Context(
        stack="dev",
        environment="dev",
        namespace="moonstack-dev",
        provider=kubernetes.Provider("cluster", cluster_identifier="test"),
        images=IMAGES,
    )


@pytest.fixture
def runtime(tmp_path: Path) -> LocalRuntime:
    return LocalRuntime.model_validate(
        {
            "images": IMAGES,
            "engine": {"hostPath": str(tmp_path), "mountPath": "/opt/engine", "command": ["python3", "-m", "vllm"]},
            "models": {"dev-wide": {"path": str(tmp_path), "revision": "a" * 64}},
        }
    )


@pytest.fixture
def dev_values() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    return {key.removeprefix("moonstack:"): value for key, value in config.items()}


@pytest.fixture
def dev(dev_values: dict[str, Any]) -> Settings:
    return Settings.from_mapping(dev_values)
