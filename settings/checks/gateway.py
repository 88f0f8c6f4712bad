"""The gateway is safe to expose, and every public name means one thing."""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from rules import ports
from rules.problem import Problem

if TYPE_CHECKING:
    from settings.settings import Settings

_ELB: Final = ("kubernetes.io/elb.id", "kubernetes.io/elb.autocreate")
_ROUTE_HOSTS: Final = 16
"""Host names of one HTTPRoute (its definition, Gateway API 1.4 to 1.6)."""


def exposed_with_tls(settings: "Settings") -> list[Problem]:
    """Keys never travel outside the cluster in clear text."""
    gateway = settings.gateway
    problems = []
    if gateway.exposure != "internal" and gateway.tls.source == "none":
        problems.append(
            Problem(
                "gateway.tls.source", "none", f"exposure {gateway.exposure} needs TLS",
                "give a Secret of type kubernetes.io/tls (source: secret), or keep exposure internal",
            )
        )  # fmt: skip
    if gateway.tls.source == "localCa" and settings.environment != "dev":
        problems.append(
            Problem(
                "gateway.tls.source", "localCa", "the local cluster's CA is for environment dev", "use source secret"
            )
        )
    if gateway.tls.source == "none" and settings.environment == "prod":
        problems.append(Problem("gateway.tls.source", "none", "environment prod needs TLS", "use source secret"))
    if gateway.tls.source != "none" and not gateway.tls.hosts:
        problems.append(Problem("gateway.tls.hosts", [], "a certificate is for a host", "name the hosts"))
    return problems


def routes_are_by_name(settings: "Settings") -> list[Problem]:
    """An Ingress and an HTTPRoute are for DNS names, which the API server holds them to only after the rest is applied."""
    gateway, hosts = settings.gateway, settings.gateway.tls.hosts
    if gateway.exposure not in ("gatewayApi", "ingress"):
        return []
    limit = f"exposure {gateway.exposure} is for DNS names, not for addresses"
    problems = [
        Problem(f"gateway.tls.hosts[{index}]", host, limit, "name the host that clients use, or choose loadBalancer")
        for index, host in enumerate(hosts)
        if _is_address(host)
    ]
    if gateway.exposure == "gatewayApi" and len(hosts) > _ROUTE_HOSTS:
        limit = f"an HTTPRoute has at most {_ROUTE_HOSTS} host names"
        problems.append(Problem("gateway.tls.hosts", len(hosts), limit, "name fewer, or one with a leading *."))
    return problems


def balancers_are_named(settings: "Settings") -> list[Problem]:
    """CCE's controller makes no ELB by itself."""
    gateway = settings.gateway
    balancer = gateway.load_balancer
    if gateway.exposure != "loadBalancer" or balancer.kind != "cceElb":
        return []
    if any(name in balancer.annotations for name in _ELB):
        return []
    return [
        Problem(
            "gateway.loadBalancer.annotations", sorted(balancer.annotations),
            "kind cceElb needs a load balancer", f"give one of: {', '.join(_ELB)}",
        )
    ]  # fmt: skip


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


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _channel_names(settings: "Settings") -> Iterator[tuple[str, str, str]]:
    entries = settings.channel_models.models
    yield from ((f"channelModels.models[{i}].alias", entry.alias, "an alias") for i, entry in enumerate(entries))
    if settings.channel.enabled:
        outside = {entry.model_name for entry in entries} - {model.name for model in settings.models}
        yield from (("channelModels.models", name, "a model of the channel") for name in sorted(outside))
    yield "channelModels.group", settings.channel_models.group, "the group of all aliases"


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    exposed_with_tls,
    routes_are_by_name,
    balancers_are_named,
    ports_are_distinct,
    public_names_are_unique,
    twins_exist,
)
