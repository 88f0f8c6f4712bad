"""Every port and every public name of the gateway means one thing."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from rules import ports
from rules.problem import Problem

if TYPE_CHECKING:
    from settings.settings import Settings


def ports_are_distinct(settings: "Settings") -> list[Problem]:
    """No two listeners of the gateway share a port."""
    taken = {
        "health": ports.GATEWAY_HEALTH,
        "metrics": ports.GATEWAY_METRICS,
        "httpPort": settings.gateway.http_port,
        "grpcPort": settings.gateway.grpc_port,
    }
    return [
        Problem(f"gateway.{name}", taken[name], "another listener of the gateway has this port", "choose another")
        for name in ports.distinct(taken)
    ]


def public_names_are_unique(settings: "Settings") -> list[Problem]:
    """A name is a model of the cluster, a model of the channel, an alias, or the group, and only one of these."""
    seen = {model.name: "a model of this stack" for model in settings.models}
    problems = []
    for path, name, what in _channel_names(settings):
        if name in seen:
            problems.append(Problem(path, name, f"{seen[name]} has this name already", "rename one of them"))
        seen[name] = what
    return problems


def twins_exist(settings: "Settings") -> list[Problem]:
    """`inCluster` names a model of this stack."""
    models = [model.name for model in settings.models]
    return [
        Problem(
            f"channelModels.models[{index}].inCluster", entry.in_cluster, "is not a model of this stack",
            f"choose one of: {', '.join(models) or 'none declared'}",
        )
        for index, entry in enumerate(settings.channel_models.models)
        if entry.in_cluster and entry.in_cluster not in models
    ]  # fmt: skip


def _channel_names(settings: "Settings") -> Iterator[tuple[str, str, str]]:
    entries = settings.channel_models.models
    yield from ((f"channelModels.models[{i}].alias", entry.alias, "an alias") for i, entry in enumerate(entries))
    if settings.channel.enabled:
        outside = {entry.model_name for entry in entries} - {model.name for model in settings.models}
        yield from (("channelModels.models", name, "a model of the channel") for name in sorted(outside))
    yield "channelModels.group", settings.channel_models.group, "the group of all aliases"


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    ports_are_distinct,
    public_names_are_unique,
    twins_exist,
)
