"""Who may ask for metrics: the API server's aggregator, known by the client certificate of its front proxy."""

import json
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

from capacity.kube import Kube

log = logging.getLogger(__name__)
CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@dataclass(frozen=True)
class FrontProxy:
    """The CA that signs the aggregator's certificate, and the common names it may have (empty: any)."""

    ca: str
    names: frozenset[str]

    def allows(self, peer: str | None) -> bool:
        """Whether a caller with this common name, verified against `ca`, is the aggregator."""
        return peer is not None and (not self.names or peer in self.names)


async def front_proxy(kube: Kube) -> FrontProxy | None:
    """As the API server publishes it; None where it was started without `--requestheader-client-ca-file`. Raises KubeError."""
    data = (await kube.get(CONFIG)).get("data", {})
    ca = data.get("requestheader-client-ca-file", "")
    if not ca:
        return None
    return FrontProxy(ca, frozenset(json.loads(data.get("requestheader-allowed-names") or "[]")))


def server_tls(certificate: Path, key: Path, proxy: FrontProxy | None) -> ssl.SSLContext:
    """TLS 1.2 or newer. Client certificates are asked for and verified, not required: probes come without one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if proxy is not None:
        context.load_verify_locations(cadata=proxy.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
