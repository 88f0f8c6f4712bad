"""Small words of Envoy's configuration language, and the places where the pod finds its files."""

from dataclasses import dataclass
from typing import Any, Final

from rules import ports
from rules.envoy_keys import FILE

Json = dict[str, Any]

HEADER_PREFIX: Final = "x-moonstack-"
MODEL_HEADER: Final = f"{HEADER_PREFIX}model"
STREAM_HEADER: Final = f"{HEADER_PREFIX}stream"
VERSION_HEADER: Final = f"{HEADER_PREFIX}key-version"
CLUSTER_HEADER: Final = f"{HEADER_PREFIX}cluster"
FIRST_HEADER: Final = f"{HEADER_PREFIX}first"
SERVED_BY_HEADER: Final = f"{HEADER_PREFIX}served-by"
PAUSE_HEADER: Final = f"{HEADER_PREFIX}pause"
"""Seconds to wait before the next attempt; between the gateway's own parts alone."""
WISH_HEADER: Final = "moonstack-target"
"""The one header by which a client with the right asks for a target; every other client's is ignored."""
METADATA: Final = "moonstack"
"""Namespace of our metadata on endpoints and routes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """Folders of the gateway's container and its ports of operation; each folder is a whole mount, as a `subPath` is never updated."""

    config: str = "/etc/moonstack/envoy"
    keys: str = "/etc/moonstack/keys"
    channel: str = "/etc/moonstack/channel"
    gate: str = "/etc/moonstack/gate"
    tls: str = "/etc/moonstack/tls"
    run: str = "/run/moonstack"
    trusted_ca: str = "/etc/ssl/certs/ca-certificates.crt"
    health_port: int = ports.GATEWAY_HEALTH
    metrics_port: int = ports.GATEWAY_METRICS
    drain_port: int = 9901
    """On the pod's own loopback: the preStop hook's way to the admin socket, for two requests and no others."""

    @property
    def admin(self) -> str:
        """The admin interface's Unix socket."""
        return f"{self.run}/admin.sock"

    @property
    def keys_file(self) -> str:
        """The clients' keys."""
        return f"{self.keys}/{FILE}"


def typed(kind: str, **fields: Any) -> Json:
    """A typed configuration; `kind` is the message's name below `envoy.`."""
    return {"@type": f"type.googleapis.com/envoy.{kind}", **fields}


def extension(name: str, kind: str, **fields: Any) -> Json:
    """A named extension with its typed configuration."""
    return {"name": name, "typed_config": typed(kind, **fields)}


def seconds(value: float) -> str:
    """A duration."""
    return f"{value:g}s"


def milliseconds(value: int) -> str:
    """A duration given in milliseconds."""
    return f"{value / 1000:g}s"


def from_file(folder: str, name: str, watched: str | None = None) -> Json:
    """A configuration source that is read again when the mounted folder, or another one that it needs, is swapped."""
    return {
        "resource_api_version": "V3",
        "path_config_source": {"path": f"{folder}/{name}", "watched_directory": {"path": watched or folder}},
    }


def response_header(name: str, value: str) -> Json:
    """An entry of `response_headers_to_add` that replaces what the upstream said."""
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
