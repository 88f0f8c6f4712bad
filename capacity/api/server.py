"""Serves the API over TLS, and takes up a new certificate or front-proxy CA without dropping a connection."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from capacity.api.front_proxy import FrontProxy, front_proxy, server_tls
from capacity.kube import Kube, KubeError

log = logging.getLogger(__name__)
RELOAD_SECONDS = 30.0


class PeerProtocol(H11Protocol):
    """Hands the common name of a verified client certificate to the application as `request.state.peer`."""

    def connection_made(self, transport: Any) -> None:
        """Called by asyncio once the TLS handshake is done."""
        super().connection_made(transport)
        certificate = transport.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        self.app_state = {**self.app_state, "peer": names[0] if names else None}


class _Server(uvicorn.Server):
    """Leaves signals to the service that runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ApiServer:
    """The HTTPS listener of one replica."""

    def __init__(self, kube: Kube, certificate: Path, key: Path, host: str, port: int) -> None:
        self._kube, self._certificate, self._key = kube, certificate, key
        self._host, self._port = host, port
        self._proxy: FrontProxy | None = None

    def allows(self, peer: str | None) -> bool:
        """Whether the caller is the aggregator. Without a published front-proxy CA nobody can be verified and all may read."""
        return self._proxy is None or self._proxy.allows(peer)

    async def run(self, app: Starlette) -> None:
        """Serve until cancelled. Raises KubeError when the front proxy's CA can't be read at the start."""
        self._proxy = await front_proxy(self._kube)
        if self._proxy is None:
            log.warning("the API server publishes no front-proxy CA: callers can't be verified")
        config = uvicorn.Config(
            app, host=self._host, port=self._port, http=PeerProtocol, log_level="warning", lifespan="off", ws="none"
        )
        config.load()
        config.ssl = server_tls(self._certificate, self._key, self._proxy)
        server = _Server(config)
        reloading = asyncio.create_task(self._reload(config))
        try:
            await server.serve()
        finally:
            reloading.cancel()

    async def _reload(self, config: uvicorn.Config) -> None:
        """New connections use the files and the CA as they are now."""
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            try:
                proxy = await front_proxy(self._kube)
                if config.ssl is None:
                    continue
                config.ssl.load_cert_chain(self._certificate, self._key)
                if proxy is not None and proxy != self._proxy:
                    config.ssl.load_verify_locations(cadata=proxy.ca)
                self._proxy = proxy
            except (KubeError, OSError) as error:
                log.warning("keeping the certificates in use: %s", error)


async def plain_server(app: Starlette, host: str, port: int) -> None:
    """Serve an app over plain HTTP until cancelled."""
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", lifespan="off", ws="none")
    await _Server(config).serve()
