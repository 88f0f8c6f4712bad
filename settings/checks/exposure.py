"""The gateway is reached as its settings say, by TLS and by a name that clients elsewhere can use."""

from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from rules import elb
from rules.network_policy import PRIVATE
from rules.problem import Problem

if TYPE_CHECKING:
    from settings.gateway import LoadBalancerSettings
    from settings.settings import Settings

_BY_NAME: Final = ("gatewayApi", "ingress")
_ROUTE_HOSTS: Final = 16
"""Host names of one HTTPRoute (its definition, Gateway API 1.4 to 1.6)."""
_ANNOTATIONS: Final = "gateway.loadBalancer.annotations"
_INSIDE: Final = (*PRIVATE, "fc00::/7")
"""Networks whose addresses the internet does not carry; the last is IPv6's own (RFC 4193)."""


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


def hosts_are_reachable(settings: "Settings") -> list[Problem]:
    """A route is for names alone, and a client elsewhere that asks for `localhost` asks itself."""
    gateway, hosts = settings.gateway, settings.gateway.tls.hosts
    if gateway.exposure in _BY_NAME:
        limit = f"exposure {gateway.exposure} is for DNS names that clients elsewhere reach, not for this machine"
        return [
            Problem(f"gateway.tls.hosts[{index}]", host, limit, "name the host that clients use")
            for index, host in enumerate(hosts)
            if _is_loopback(host)
        ]
    if gateway.exposure == "loadBalancer" and gateway.tls.source != "none" and hosts and all(map(_is_loopback, hosts)):
        limit = "clients of a load balancer need a certificate for the host that they ask for"
        return [
            Problem("gateway.tls.hosts", list(hosts), limit, "name that host, as the certificate in the Secret does")
        ]
    return []


def routes_are_by_name(settings: "Settings") -> list[Problem]:
    """An Ingress and an HTTPRoute are for DNS names, which the API server holds them to only after the rest is applied."""
    gateway, hosts = settings.gateway, settings.gateway.tls.hosts
    if gateway.exposure not in _BY_NAME:
        return []
    limit = f"exposure {gateway.exposure} is for DNS names, not for addresses"
    problems = [
        Problem(f"gateway.tls.hosts[{index}]", host, limit, "name the host that clients use, or choose loadBalancer")
        for index, host in enumerate(hosts)
        if _is_address(host) and not _is_loopback(host)
    ]
    if gateway.exposure == "gatewayApi" and len(hosts) > _ROUTE_HOSTS:
        limit = f"an HTTPRoute has at most {_ROUTE_HOSTS} host names"
        problems.append(Problem("gateway.tls.hosts", len(hosts), limit, "name fewer, or one with a leading *."))
    return problems


def balancers_are_named(settings: "Settings") -> list[Problem]:
    """CCE's controller takes an ELB that is named, or makes one of the type that `internal` says."""
    balancer = settings.gateway.load_balancer
    if settings.gateway.exposure != "loadBalancer" or balancer.kind != "cceElb":
        return []
    given = sorted({elb.ID, elb.AUTOCREATE} & balancer.annotations.keys())
    if len(given) == 1:
        return list(_made(balancer))
    limit = "an ELB is there already or is to be made, not both" if given else "kind cceElb needs a load balancer"
    fix = f"give one of: {elb.ID}, {elb.AUTOCREATE}"
    return [Problem(_ANNOTATIONS, given or sorted(balancer.annotations), limit, fix)]


def internal_is_kept(settings: "Settings") -> list[Problem]:
    """Nothing tells an unknown controller that an address is for inside: the operator's annotations do, or who may connect is limited."""
    balancer = settings.gateway.load_balancer
    unknown = settings.gateway.exposure == "loadBalancer" and balancer.kind == "plain"
    if not (unknown and balancer.internal) or balancer.annotations:
        return []
    fix = (
        "give your controller's annotation for it in loadBalancer.annotations, networks inside in loadBalancer.sourceRanges,"
        " or say internal: false"
    )
    if not balancer.source_ranges:
        limit = "kind plain tells no controller, so that the address may be public"
        return [Problem("gateway.loadBalancer.internal", True, limit, fix)]
    limit = "loadBalancer.internal is true, and kind plain keeps to it by who may connect: " + ", ".join(_INSIDE)
    return [
        Problem(f"gateway.loadBalancer.sourceRanges[{index}]", text, limit, fix)
        for index, text in enumerate(balancer.source_ranges)
        if not _is_inside(text)
    ]


def _is_inside(text: str) -> bool:
    network = ip_network(text)
    match network:
        case IPv4Network():
            return any(
                network.subnet_of(inside) for inside in map(ip_network, _INSIDE) if isinstance(inside, IPv4Network)
            )
        case IPv6Network():
            return any(
                network.subnet_of(inside) for inside in map(ip_network, _INSIDE) if isinstance(inside, IPv6Network)
            )


def _made(balancer: "LoadBalancerSettings") -> Iterator[Problem]:
    path = f"{_ANNOTATIONS}.{elb.AUTOCREATE}"
    try:
        wanted = elb.wanted(balancer.annotations)
    except ValueError as error:
        yield Problem(
            path, balancer.annotations[elb.AUTOCREATE], str(error), f'write {{"type":"{elb.INSIDE}"}} or more'
        )
        return
    if wanted is None:
        return
    kind = elb.kind(balancer.internal)
    said = wanted.get("type", kind)
    if said != kind:
        limit = f"loadBalancer.internal is {str(balancer.internal).lower()}, which is type {kind}"
        yield Problem(f"{path}: type", said, limit, f"leave type out or write {kind}, or turn internal round")
    elif missing := [name for name in elb.FOR_PUBLIC if said == elb.OUTSIDE and name not in wanted]:
        yield Problem(
            path, sorted(wanted), f"a public ELB needs {', '.join(missing)}", "add them, or set internal: true"
        )


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    if _is_address(host):
        return ip_address(host).is_loopback or ip_address(host).is_unspecified
    return host == "localhost" or host.endswith(".localhost")


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    exposed_with_tls,
    hosts_are_reachable,
    routes_are_by_name,
    balancers_are_named,
    internal_is_kept,
)
