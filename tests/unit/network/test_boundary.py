"""What the NetworkPolicies of a stack let through, judged as a network plugin would."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from components.network_boundary import NetworkBoundary
from rules import flow, ports
from rules.network_policy import COMPONENT, DEFAULT_DENY
from settings.boundary import network_policies
from settings.errors import SettingsError
from settings.settings import Settings
from tests.unit.pulumi_engine import deploy, plain
from tests.unit.test_settings import dev

NAMESPACE = "llm"


def stack(**groups: Any) -> Settings:
    return Settings.from_mapping(dev() | {"network": {}} | groups)


def pod(part: str) -> dict[str, Any]:
    return {"namespace": NAMESPACE, "labels": {COMPONENT: part}, "ip": "10.244.0.9"}


def elsewhere(namespace: str, **labels: str) -> dict[str, Any]:
    return {"namespace": namespace, "labels": labels, "ip": "10.244.0.9"}


def outside(ip: str) -> dict[str, Any]:
    return {"namespace": None, "labels": {}, "ip": ip}


def allowed(
    settings: Settings, source: dict[str, Any], target: dict[str, Any], port: int, protocol: str = "TCP"
) -> bool:
    specs = list(network_policies(settings).values())
    out = _open(specs, source, target, port, protocol, "egress", "to")
    into = _open(specs, target, source, port, protocol, "ingress", "from")
    return out and into


def _open(specs, this, other, port, protocol, direction, key) -> bool:
    selecting = [
        spec for spec in specs if this["namespace"] == NAMESPACE and _selects(spec["podSelector"], this["labels"])
    ]
    if not selecting:
        return True
    rules = [rule for spec in selecting for rule in spec.get(direction, [])]
    return any(_port(rule, port, protocol) and any(_peer(peer, other) for peer in rule[key]) for rule in rules)


def _port(rule, port, protocol) -> bool:
    return "ports" not in rule or {"protocol": protocol, "port": port} in rule["ports"]


def _peer(peer, other) -> bool:
    if block := peer.get("ipBlock"):
        address = ip_address(other["ip"])
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(n) for n in block.get("except", [])
        )
    if "namespaceSelector" in peer:
        if other["namespace"] is None or not _selects(
            peer["namespaceSelector"], {"kubernetes.io/metadata.name": other["namespace"]}
        ):
            return False
    elif other["namespace"] != NAMESPACE:
        return False
    return _selects(peer.get("podSelector", {}), other["labels"])


def _selects(selector, labels) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items()


EDGES = {
    (flow.GATEWAY, flow.ROUTER, ports.ROUTER),
    (flow.ROUTER, flow.ENGINE, ports.ENGINE),
    (flow.ENGINE, flow.ENGINE, 23456),
    (flow.ENGINE, flow.KV_STORE, ports.KV_MASTER_RPC),
    (flow.KV_STORE, flow.ENGINE, 23456),
    (flow.CAPACITY, flow.ENGINE, ports.ENGINE),
    (flow.CAPACITY, flow.ROUTER, ports.ROUTER_METRICS),
    (flow.KEY_AGENT, flow.GATEWAY, ports.GATEWAY_METRICS),
    (flow.SMOKE, flow.GATEWAY, ports.GATEWAY_HTTP),
}
FORBIDDEN = {
    (flow.GATEWAY, flow.ENGINE, ports.ENGINE),
    (flow.GATEWAY, flow.KV_STORE, ports.KV_MASTER_RPC),
    (flow.ROUTER, flow.KV_STORE, ports.KV_MASTER_RPC),
    (flow.ROUTER, flow.GATEWAY, ports.GATEWAY_HTTP),
    (flow.ROUTER, flow.ENGINE, 23456),
    (flow.ENGINE, flow.ROUTER, ports.ROUTER),
    (flow.ENGINE, flow.CAPACITY, ports.CAPACITY_API),
    (flow.SMOKE, flow.ENGINE, ports.ENGINE),
    ("stranger", flow.ENGINE, ports.ENGINE),
    ("stranger", flow.ROUTER, ports.ROUTER),
    (flow.ENGINE, "stranger", 80),
}


@pytest.mark.parametrize(("source", "target", "port"), sorted(EDGES))
def test_every_edge_of_the_graph_is_open(source, target, port):
    assert allowed(stack(), pod(source), pod(target), port)


@pytest.mark.parametrize(("source", "target", "port"), sorted(FORBIDDEN))
def test_everything_else_inside_is_closed(source, target, port):
    assert not allowed(stack(), pod(source), pod(target), port)


def test_clients_reach_the_gateway_and_nothing_else():
    client = outside("203.0.113.7")
    neighbour = elsewhere("shop", app="web")
    for one in (client, neighbour):
        assert allowed(stack(), one, pod(flow.GATEWAY), ports.GATEWAY_HTTP)
        assert not allowed(stack(), one, pod(flow.GATEWAY), ports.GATEWAY_METRICS)
        assert not allowed(stack(), one, pod(flow.ROUTER), ports.ROUTER)
        assert not allowed(stack(), one, pod(flow.ENGINE), 23456)


def test_clients_can_be_narrowed():
    settings = stack(network={"clients": ["198.51.100.0/24"]})
    assert allowed(settings, outside("198.51.100.3"), pod(flow.GATEWAY), ports.GATEWAY_HTTP)
    assert not allowed(settings, outside("203.0.113.7"), pod(flow.GATEWAY), ports.GATEWAY_HTTP)


CHANNEL = {
    "channel": {"enabled": True, "key": "channel"},
    "gateway": dev()["gateway"],
    "keys": {"source": "config", "keys": [{"id": "channel", "purpose": "fallback", "owner": "gateway"}]},
}


def test_only_the_gateway_reaches_the_channel_and_never_a_private_address():
    settings = stack(**CHANNEL)
    world, metadata_service = outside("203.0.113.7"), outside("169.254.169.254")
    assert allowed(settings, pod(flow.GATEWAY), world, 443)
    assert not allowed(settings, pod(flow.GATEWAY), world, 80)
    assert not allowed(settings, pod(flow.GATEWAY), metadata_service, 443)
    assert not allowed(settings, pod(flow.GATEWAY), outside("10.1.2.3"), 443)
    assert not allowed(settings, pod(flow.ENGINE), world, 443)
    assert not allowed(stack(), pod(flow.GATEWAY), world, 443), "no channel, no way out"


def test_a_proxy_to_the_channel_replaces_the_internet():
    settings = stack(**CHANNEL, network={"channel": ["10.9.9.9/32"]})
    assert allowed(settings, pod(flow.GATEWAY), outside("10.9.9.9"), 443)
    assert not allowed(settings, pod(flow.GATEWAY), outside("203.0.113.7"), 443)


def test_only_who_needs_the_api_server_reaches_it():
    settings = stack(network={"apiServer": ["10.96.0.1/32"]})
    for part in (flow.ROUTER, flow.CAPACITY, flow.KEY_AGENT):
        assert allowed(settings, pod(part), outside("10.96.0.1"), 443)
        assert not allowed(settings, pod(part), outside("203.0.113.7"), 443)
    for part in (flow.GATEWAY, flow.ENGINE, flow.KV_STORE, "stranger"):
        assert not allowed(settings, pod(part), outside("10.96.0.1"), 443)
    assert allowed(settings, outside("10.96.0.1"), pod(flow.CAPACITY), ports.CAPACITY_API)
    assert allowed(settings, outside("10.96.0.1"), pod(flow.ENGINE), ports.ENGINE)


def test_an_api_server_of_unknown_address_opens_the_capacity_api_alone():
    anybody = outside("203.0.113.7")
    assert allowed(stack(), pod(flow.ROUTER), anybody, 6443)
    assert allowed(stack(), anybody, pod(flow.CAPACITY), ports.CAPACITY_API)
    for part, port in ((flow.ENGINE, ports.ENGINE), (flow.ROUTER, ports.ROUTER), (flow.GATEWAY, ports.GATEWAY_METRICS)):
        assert not allowed(stack(), anybody, pod(part), port)


def test_prometheus_scrapes_metrics_from_its_own_namespace_only():
    assert allowed(stack(), elsewhere("monitoring"), pod(flow.GATEWAY), ports.GATEWAY_METRICS)
    assert not allowed(stack(), elsewhere("shop"), pod(flow.GATEWAY), ports.GATEWAY_METRICS)
    assert not allowed(stack(), elsewhere("monitoring"), pod(flow.KV_STORE), ports.KV_MASTER_RPC)
    moved = stack(network={"monitoringNamespace": "observe"})
    assert allowed(moved, elsewhere("observe"), pod(flow.GATEWAY), ports.GATEWAY_METRICS)


def test_the_gateway_reaches_kthenas_router_by_its_services_port_and_by_its_pods():
    """A network plugin that judges behind the Service's translation sees port 8080, where the gateway asked for 80."""
    router, gateway = elsewhere("kthena-system"), pod(flow.GATEWAY)
    values = dev()
    values["kthena"] = {"release": "1.0", "scheduler": "default-scheduler", "gang": False}
    values["models"][0]["backend"] = "kthena"
    served = Settings.from_mapping(values | {"network": {}})
    for port, is_open in ((80, True), (8080, True), (8443, False)):
        assert allowed(served, gateway, router, port) == is_open
        assert not allowed(stack(), gateway, router, port), "no model is on Kthena"
    assert allowed(served, router, pod(flow.ENGINE), ports.ENGINE), (
        "so that it scales by the engines' metrics, and asks them"
    )
    moved = Settings.from_mapping(values | {"network": {"kthenaRouterPort": 9000}})
    assert allowed(moved, gateway, router, 9000) and not allowed(moved, gateway, router, 8080)


def test_every_pod_may_ask_dns_where_dns_is():
    dns = elsewhere("kube-system", **{"k8s-app": "kube-dns"})
    for one in (*flow.PARTS, "stranger"):
        assert allowed(stack(), pod(one), dns, 53, "UDP")
        assert not allowed(stack(), pod(one), elsewhere("kube-system"), 53, "UDP")
    on_host = stack(network={"dns": ["10.203.0.2/32"]})
    assert allowed(on_host, pod(flow.ENGINE), outside("10.203.0.2"), 53, "UDP")
    assert not allowed(stack(), pod(flow.ENGINE), outside("10.203.0.2"), 53, "UDP")


def test_a_boundary_that_is_off_declares_nothing():
    assert network_policies(stack(network={"enabled": False})) == {}


def test_an_address_that_is_no_cidr_is_refused_with_an_example():
    with pytest.raises(SettingsError) as caught:
        stack(network={"clients": ["10.0.0.1/8"]})
    assert "moonstack:network.clients[0]" in str(caught.value)
    assert "10.0.0.0/24" in str(caught.value)


def test_the_component_declares_every_policy():
    objects = [
        one
        for one in deploy(lambda context: NetworkBoundary("boundary", stack(), context))
        if "NetworkPolicy" in one.type
    ]
    declared = {plain(one.inputs["metadata"])["name"]: plain(one.inputs["spec"]) for one in objects}
    assert set(declared) == set(network_policies(stack()))
    assert declared[DEFAULT_DENY]["podSelector"] == {}
