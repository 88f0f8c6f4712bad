"""The gateway's own side: listeners, limits, exposure (A3 `[server]`)."""

from typing import Literal

from pydantic import Field

from rules import ports
from settings.base import Group, Port


class TlsSettings(Group):
    """The gateway's certificate."""

    source: Literal["none", "localCa", "secret"] = "secret"
    """none: only for exposure internal; localCa: the local cluster's CA signs it; secret: a Secret of type kubernetes.io/tls."""
    secret_name: str = "gateway-tls"
    hosts: tuple[str, ...] = ("localhost",)


class GatewaySettings(Group):
    """Envoy in front of everything."""

    replicas: int = Field(default=2, ge=1, le=1000)
    """Used where no scaler owns the gateway."""
    http_port: Port = ports.GATEWAY_HTTP
    grpc_port: Port = ports.GATEWAY_GRPC
    max_concurrent_streams: int = Field(default=4096, ge=1)
    stream_timeout_seconds: int = Field(default=30, ge=1)
    max_body_bytes: int = Field(default=4 * 2**20, ge=1024, le=64 * 2**20)
    exposure: Literal["internal", "nodePort", "loadBalancer", "gatewayApi", "ingress"] = "internal"
    node_port: int | None = Field(default=None, ge=30000, le=32767)
    tls: TlsSettings = TlsSettings()
