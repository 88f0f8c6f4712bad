"""The network boundary: where the ends of allowed flows are that no label can name."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, Field

from rules.network_policy import EVERYWHERE
from settings.base import DnsLabel, Group, Port


def _cidr(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError as error:
        raise ValueError(f"is not a CIDR ({error}); write for example 10.0.0.0/24") from None


Cidr = Annotated[str, AfterValidator(_cidr), Field(json_schema_extra={"format": "CIDR"})]


class NetworkSettings(Group):
    """NetworkPolicies from the flow graph (rules/flow.py)."""

    enabled: bool = True
    """Whether NetworkPolicies are declared."""
    enforced: bool = True
    """Whether the cluster's network plugin is to enforce them; false: smoke and preflight say it if not, and don't fail. Not in prod."""
    clients: tuple[Cidr, ...] = (EVERYWHERE,)
    """Who may connect to the gateway."""
    api_server: tuple[Cidr, ...] = ()
    """Addresses of the API server (Service and control plane); its proxy reaches engines and routers only if they are given."""
    dns: tuple[Cidr, ...] = ()
    """DNS servers that are no kube-dns pods of kube-system."""
    channel: tuple[Cidr, ...] = ()
    """The external channel's addresses, or the proxy's that leads there; empty: everywhere but private ranges."""
    weights: tuple[Cidr, ...] = ()
    """Object store or hub; empty: everywhere but private ranges."""
    etcd: tuple[Cidr, ...] = ()
    """Addresses of the etcd of `kvStore.ha`: masters and engines may reach them."""
    monitoring_namespace: DnsLabel = "monitoring"
    """Prometheus scrapes from here."""
    kthena_namespace: DnsLabel = "kthena-system"
    """Kthena's router and controllers are here."""
    kthena_router_port: Port = 8080
    """Port that the pods of Kthena's router listen on: most network plugins judge by it, and not by the port of `gateway.kthenaRouter`."""
