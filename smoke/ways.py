"""Ways to the gateway: its public endpoint, a port forwarded by the API server, or through a pod inside the cluster."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from kr8s.asyncio.objects import Pod

from rules import names
from settings.paths import state_dir
from settings.settings import Settings
from smoke.client import TIMEOUTS
from smoke.cluster import Cluster, ready
from smoke.errors import PermanentError, TemporaryError
from smoke.relay import relayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the gateway is reached, and whose certificate it must show."""

    base_url: str
    server_name: str | None = None
    """Name for TLS where it differs from the URL's host."""


@asynccontextmanager
async def open_way(settings: Settings, cluster: Cluster | None, stack: str) -> AsyncIterator[Address]:
    """The way that `smoke.via` names, open as long as the context lasts. Raises SmokeError."""
    via = settings.smoke.via
    if via != "endpoint":
        if cluster is None:
            raise PermanentError(f"smoke.via {via} needs the cluster", "give a kubeconfig, or use via endpoint")
        way = _forwarded(settings, cluster) if via == "port-forward" else relayed(settings, cluster, stack)
        async with way as port:
            yield _by_loopback(settings, port)
        return
    if settings.smoke.base_url is None:
        raise PermanentError("smoke.endpoint is not set", "set moonstack:smoke.endpoint, or use smoke.via port-forward")
    yield Address(base_url=settings.smoke.base_url)


@asynccontextmanager
async def connection(settings: Settings, address: Address) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client for the address that trusts the stack's CA, and sends the name that its certificate has."""

    async def name_for_tls(request: httpx.Request) -> None:
        if address.server_name:
            request.extensions["sni_hostname"] = address.server_name

    async with httpx.AsyncClient(
        base_url=address.base_url,
        verify=trust(settings),
        timeout=TIMEOUTS,
        event_hooks={"request": [name_for_tls]},
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
    ) as http:
        yield http


def trust(settings: Settings) -> ssl.SSLContext:
    """The system's CAs (or SSL_CERT_FILE), and the local CA where `gateway.tls.source` is localCa."""
    context = httpx.create_ssl_context()
    local = state_dir() / "gateway" / "ca.crt"
    if settings.gateway.tls.source == "localCa" and local.is_file():
        context.load_verify_locations(local)
    return context


@asynccontextmanager
async def _forwarded(settings: Settings, cluster: Cluster) -> AsyncIterator[int]:
    pods = [pod for pod in await cluster.pods({"app.kubernetes.io/component": names.GATEWAY}) if ready(pod)]
    if not pods:
        raise TemporaryError(f"no gateway pod is Ready in namespace {cluster.namespace}", "run python -m smoke doctor")
    pod = await Pod(pods[0], api=cluster.api)
    async with pod.portforward(remote_port=settings.gateway.http_port, local_port="auto") as port:
        yield port


def _by_loopback(settings: Settings, port: int) -> Address:
    """A port of this machine behind which the gateway is: its certificate names its own host."""
    tls = settings.gateway.tls
    if tls.source == "none":
        return Address(base_url=f"http://127.0.0.1:{port}")
    return Address(base_url=f"https://127.0.0.1:{port}", server_name=tls.server_name)
