"""The stack's NetworkPolicies: what the settings make of the flow graph. Components declare them, policies compare with them."""

from typing import Any

from pydantic import AnyHttpUrl

from rules import flow, network_policy
from settings.settings import Settings
from settings.weights import FETCHED


def network_policies(settings: Settings) -> dict[str, dict[str, Any]]:
    """NetworkPolicy specs by object name, none if the boundary is off."""
    if not settings.network.enabled:
        return {}
    return network_policy.specs(flow.flows(_shape(settings)), _places(settings))


def _shape(settings: Settings) -> flow.Shape:
    on_kthena = any(model.backend == "kthena" for model in settings.models)
    routers = {int(settings.gateway.kthena_router.rpartition(":")[2]), settings.network.kthena_router_port}
    ha = settings.kv_store.ha if settings.kv_store.enabled else None
    fetched = [model.weights for model in settings.models if model.weights.source in FETCHED]
    return flow.Shape(
        http_port=settings.gateway.http_port,
        grpc_port=settings.gateway.grpc_port,
        channel_port=settings.channel.base_url.port if settings.channel.enabled else None,
        kthena_ports=tuple(sorted(routers)) if on_kthena else (),
        weights_port=_port(fetched[0].endpoint) if fetched else None,
        etcd_ports=tuple(sorted({int(each.rpartition(":")[2]) for each in ha.etcd})) if ha else (),
    )


def _port(endpoint: AnyHttpUrl | None) -> int:
    return (endpoint.port if endpoint else None) or 443


def _places(settings: Settings) -> network_policy.Places:
    network = settings.network
    return network_policy.Places(
        clients=network.clients,
        api_server=network.api_server,
        dns=network.dns,
        channel=network.channel,
        weights=network.weights,
        etcd=network.etcd,
        monitoring_namespace=network.monitoring_namespace,
        kthena_namespace=network.kthena_namespace,
    )
