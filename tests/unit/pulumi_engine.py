"""A Pulumi engine for unit tests: runs a program under mocks and tells what it registered."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import Context

SECRET = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"


@dataclass(frozen=True)
class Registered:
    """One resource as the engine saw it; `inputs` keeps the secret wrapper around what is secret."""

    type: str
    name: str
    inputs: dict[str, Any]


def secret(value: Any) -> bool:
    """Whether the engine would treat a registered input as secret."""
    return isinstance(value, dict) and value.get(SECRET) == SECRET_SIGNATURE


def plain(value: Any) -> Any:
    """A registered input without its secret wrappers, and whole numbers as such: the engine sends 8000 as 8000.0."""
    if secret(value):
        return plain(value["value"])
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def holds_secret(value: Any) -> bool:
    """Whether anything below a registered input is secret."""
    if secret(value):
        return True
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(holds_secret(item) for item in items)


def deploy(program: Callable[[Context], Any], *, preview: bool = False, environment: str = "dev") -> list[Registered]:
    """Run a function that declares resources in a context; what it raises is raised here."""
    return run(lambda: program(_context(environment)), preview=preview)


def run(
    program: Callable[[], Any], *, preview: bool = False, project: str = "moonstack", stack: str = "test"
) -> list[Registered]:
    """Run a whole program to its end, in an event loop of its own."""
    engine = _Engine()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        pulumi.runtime.set_mocks(engine, project=project, stack=stack, preview=preview)
        pulumi.runtime.test(lambda: _returning_nothing(program))()
    finally:
        loop.close()
        asyncio.set_event_loop(asyncio.new_event_loop())
    return engine.registered


def _returning_nothing(program: Callable[[], Any]) -> None:
    program()


def _context(environment: str) -> Context:
    provider = kubernetes.Provider("cluster", cluster_identifier="test", kubeconfig="{}")
    images = {name: f"registry.test/{name}:1" for name in ("gateway", "router", "mooncake", "capacity", "engine-cpu")}
    return Context(stack="test", environment=environment, namespace="moonstack-test", provider=provider, images=images)


class _Engine(pulumi.runtime.Mocks):
    def __init__(self) -> None:
        self.registered: list[Registered] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        self.registered.append(Registered(args.typ, args.name, args.inputs))
        return f"{args.name}-id", args.inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        return {}
