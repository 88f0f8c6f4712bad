"""Who talks to whom: the graph that NetworkPolicies are made of and checked against. What is not here is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rules import ports

GATEWAY: Final = "gateway"
ROUTER: Final = "router"
ENGINE: Final = "engine"
KV_STORE: Final = "kv-store"
CAPACITY: Final = "capacity"
KEY_AGENT: Final = "key-agent"
SMOKE: Final = "smoke"
PARTS: Final = (GATEWAY, ROUTER, ENGINE, KV_STORE, CAPACITY, KEY_AGENT, SMOKE)
"""Values of the label `app.kubernetes.io/component` on our pods."""

CLIENTS: Final = "clients"
CHANNEL: Final = "channel"
API_SERVER: Final = "api-server"
DNS: Final = "dns"
PROMETHEUS: Final = "prometheus"
KTHENA_ROUTER: Final = "kthena-router"
WEIGHTS: Final = "weights-source"
ETCD: Final = "etcd"

ANY_PORT: Final = ()
_API_PORTS: Final = (443, 6443)
"""The Service's port and the server's own: whether a policy sees the one or the other depends on the network plugin."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One allowed direction; `ports` are TCP ports of the target, empty for all."""

    source: str
    target: str
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What of a stack decides its flows."""

    http_port: int = ports.GATEWAY_HTTP
    grpc_port: int = ports.GATEWAY_GRPC
    channel_port: int | None = None
    """Port of the external channel, None when there is none."""
    kthena_ports: tuple[int, ...] = ()
    """Ports of Kthena's router, its Service's and its pods': a policy sees either, by network plugin. Empty without a model on Kthena."""
    weights_port: int | None = None
    """Port of the object store or hub that pods load weights from, None if none does."""
    etcd_ports: tuple[int, ...] = ()
    """Ports of the etcd where the store's masters elect a leader and engines look it up; empty without election."""


def flows(shape: Shape) -> tuple[Flow, ...]:
    """Every allowed flow of a stack; DNS is allowed to all and not listed."""
    return (*_serving(shape), *_control(), *_optional(shape), *_metrics())


def _serving(shape: Shape) -> Iterator[Flow]:
    for source in (CLIENTS, SMOKE):
        yield Flow(source, GATEWAY, (shape.http_port, shape.grpc_port))
    yield Flow(GATEWAY, ROUTER, (ports.ROUTER,))
    yield Flow(ROUTER, ENGINE, (ports.ENGINE,))
    # Mooncake, NIXL and HCCL pick their ports at random.
    for source, target in ((ENGINE, ENGINE), (ENGINE, KV_STORE), (KV_STORE, ENGINE), (KV_STORE, KV_STORE)):
        yield Flow(source, target, ANY_PORT)


def _control() -> Iterator[Flow]:
    for source in (ROUTER, CAPACITY, KEY_AGENT, SMOKE):
        yield Flow(source, API_SERVER, _API_PORTS)
    yield Flow(API_SERVER, CAPACITY, (ports.CAPACITY_API,))
    # Smoke reads counters through the API server's proxy.
    yield Flow(API_SERVER, ENGINE, (ports.ENGINE,))
    yield Flow(API_SERVER, ROUTER, (ports.ROUTER, ports.ROUTER_METRICS))
    yield Flow(API_SERVER, KV_STORE, (ports.KV_MASTER_METRICS,))
    yield Flow(API_SERVER, GATEWAY, (ports.GATEWAY_METRICS,))


def _optional(shape: Shape) -> Iterator[Flow]:
    if shape.channel_port:
        yield Flow(GATEWAY, CHANNEL, (shape.channel_port,))
    if shape.kthena_ports:
        yield Flow(GATEWAY, KTHENA_ROUTER, shape.kthena_ports)
        yield Flow(KTHENA_ROUTER, ENGINE, (ports.ENGINE,))
    if shape.weights_port:
        yield Flow(ENGINE, WEIGHTS, (shape.weights_port,))
    if shape.etcd_ports:
        yield Flow(KV_STORE, ETCD, shape.etcd_ports)
        yield Flow(ENGINE, ETCD, shape.etcd_ports)


def _metrics() -> Iterator[Flow]:
    scraped = {
        GATEWAY: ports.GATEWAY_METRICS,
        ROUTER: ports.ROUTER_METRICS,
        ENGINE: ports.ENGINE,
        KV_STORE: ports.KV_MASTER_METRICS,
        CAPACITY: ports.CAPACITY_METRICS,
        KEY_AGENT: ports.CAPACITY_METRICS,
    }
    for target, port in scraped.items():
        yield Flow(PROMETHEUS, target, (port,))
        if target not in (CAPACITY, KEY_AGENT):
            yield Flow(CAPACITY, target, (port,))
    yield Flow(KEY_AGENT, GATEWAY, (ports.GATEWAY_METRICS,))
