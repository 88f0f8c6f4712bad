"""What Kthena's controller says of a stack's own objects: served, scaled, or not looked at."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from rules import kthena, names, serving_replicas
from rules.kthena import WORKLOAD
from rules.serving_replicas import Running
from settings.settings import Settings
from smoke.cluster import Cluster, Object

PATIENCE_SECONDS: Final = 60.0
"""How long a controller may take for its first word on an object."""
RESOURCES: Final = {
    "ModelServing": "modelservings",
    "AutoscalingPolicy": "autoscalingpolicies",
    "AutoscalingPolicyBinding": "autoscalingpolicybindings",
}
"""Kind → plural name in the API's paths."""


def served(settings: Settings) -> list[str]:
    """Names of the ModelServings that the settings declare."""
    return [names.model_serving(model.name) for model in settings.models if model.backend == "kthena"]


def scalers(settings: Settings) -> tuple[str, list[str]]:
    """Kind and names of what scales these: one policy a model, or in 0.4 one binding a role."""
    models = [model for model in settings.models if model.backend == "kthena"] if scaled(settings) else []
    if settings.kthena.release == "1.0":
        return "AutoscalingPolicy", [kthena.scaler(model.name) for model in models]
    return "AutoscalingPolicyBinding", [kthena.scaler(model.name, role) for model in models for role in model.roles()]


async def running(settings: Settings) -> dict[str, Running]:
    """The ModelServings that Kthena scales, as they run now; those that aren't there are left out. Raises SmokeError."""
    if not scaled(settings):
        return {}
    cluster = await Cluster.connect(settings.cluster)
    wanted = served(settings)
    found = [await cluster.get(cluster.path(RESOURCES["ModelServing"], name, WORKLOAD)) for name in wanted]
    return {name: serving_replicas.running(one) for name, one in zip(wanted, found, strict=True) if one}


def scaled(settings: Settings) -> bool:
    """Whether Kthena scales anything."""
    return settings.autoscaling.engines.enabled and bool(served(settings))


def unscaled(settings: Settings, found: Iterable[Object], now: datetime) -> Iterator[tuple[str, str]]:
    """`kind/name` of each declared scaler that does not scale, and what is said of it.

    Bindings of 0.4 have no status: that they are there is all that can be seen.
    """
    kind, wanted = scalers(settings)
    yield from _troubled(kind, wanted, found, now, "Ready" if settings.kthena.release == "1.0" else None)


def unserved(settings: Settings, found: Iterable[Object], now: datetime) -> Iterator[tuple[str, str]]:
    """`kind/name` of each declared ModelServing whose engines are not available, and what is said of it."""
    yield from _troubled("ModelServing", served(settings), found, now, "Available")


def _troubled(
    kind: str, wanted: Iterable[str], found: Iterable[Object], now: datetime, condition: str | None
) -> Iterator[tuple[str, str]]:
    there = {one["metadata"]["name"]: one for one in found if one.get("kind", kind) == kind}
    for name in wanted:
        thing = f"{kind.lower()}/{name}"
        if name not in there:
            yield thing, "it is declared and not there"
        elif condition and (said := _trouble(there[name], condition, now)):
            yield thing, said


def _trouble(thing: Object, condition: str, now: datetime) -> str:
    """What is wrong by a condition that should be True; empty when nothing is, or while the controller has time left."""
    states = thing.get("status", {}).get("conditions", ())
    state = next((one for one in states if one["type"] == condition), None)
    if state is None:
        made = datetime.fromisoformat(thing["metadata"]["creationTimestamp"])
        waited = (now - made).total_seconds() > PATIENCE_SECONDS
        return f"Kthena's controller has said nothing of it, {condition} has no value" if waited else ""
    if state["status"] == "True":
        return ""
    return f"{condition} is {state['status']}: {state.get('message') or state.get('reason', '')}"
