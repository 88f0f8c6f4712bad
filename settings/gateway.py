"""The gateway's own side: listeners, limits, exposure (A3 `[server]`)."""

from typing import Annotated, Literal

from pydantic import Field

from rules import ports
from settings.base import Bytes, Cpu, DnsLabel, Group, Host, HostPort, LabelKey, ObjectName, Port
from settings.network import Cidr
from settings.plain_input import LINES

Exposure = Literal["internal", "nodePort", "loadBalancer", "gatewayApi", "ingress"]


class TlsSettings(Group):
    """The gateway's certificate; TLS 1.2 or newer."""

    source: Literal["none", "localCa", "secret"] = "secret"
    """none: only for exposure internal; localCa: the local cluster's CA signs it; secret: a Secret of type kubernetes.io/tls,
    given or kept by cert-manager."""
    secret_name: ObjectName = "gateway-tls"
    """The Secret, for source secret."""
    hosts: tuple[Host, ...] = ("localhost",)
    """Names and addresses of the certificate: source localCa has it signed for them; routes and ingresses are for the names. Behind a load
    balancer, a route or an ingress they must be more than this machine's own."""

    @property
    def server_name(self) -> str:
        """One host that the certificate vouches for, for callers that reach the gateway by another name; never a wildcard."""
        exact = (host for host in self.hosts if not host.startswith("*."))
        return next(exact, None) or (self.hosts[0].replace("*", "gateway") if self.hosts else "localhost")


class LoadBalancerSettings(Group):
    """Exposure loadBalancer: a Service of that type, with the annotations that the cloud's controller reads."""

    kind: Literal["eksNlb", "cceElb", "plain"] = "plain"
    """Whose annotations are written: AWS's NLB, Huawei Cloud's ELB, or none."""
    internal: bool = True
    """Whether the load balancer has an address inside the network only. eksNlb: its scheme; cceElb: the type of an ELB to be made (one that
    is there keeps its own); plain: `annotations` must say it in the controller's words, or `sourceRanges` let in private networks alone."""
    annotations: Annotated[dict[LabelKey, str], LINES] = Field(default_factory=dict)
    """Added to those of `kind`, and win over them."""
    source_ranges: tuple[Cidr, ...] = ()
    """CIDRs that may connect; everyone when empty."""


class RouteSettings(Group):
    """Exposures gatewayApi and ingress: what the route attaches to. TLS goes on to the gateway from there."""

    gateway: ObjectName = "gateway"
    """Name of the Gateway (gatewayApi)."""
    gateway_namespace: DnsLabel | None = None
    """Namespace of the Gateway; the stack's own when not given."""
    backend_ca: ObjectName | None = None
    """ConfigMap with `ca.crt` of the gateway's certificate (gatewayApi); the system's authorities when not given."""
    class_name: ObjectName = "nginx"
    """Ingress class (ingress)."""


class InboundLimits(Group):
    """What one client may send; limits are per gateway pod."""

    address_qps: int = Field(default=1000, ge=1, le=1_000_000)
    """Requests a second from one address, counted before the key is looked at."""
    address_burst: int = Field(default=2000, ge=1, le=1_000_000)
    """Requests that one address may send at once."""
    header_kilobytes: int = Field(default=32, ge=8, le=512)
    """All headers of a request together."""
    header_count: int = Field(default=64, ge=16, le=1000)
    """Headers of a request."""
    header_seconds: int = Field(default=10, ge=1, le=3600)
    """A client that takes longer to send its headers is cut off."""
    connections: int = Field(default=10_000, ge=16, le=1_000_000)
    """Open client connections of a pod."""


class GatewaySettings(Group):
    """Envoy in front of everything."""

    replicas: int = Field(default=2, ge=1, le=1000)
    """Used where no scaler owns the gateway."""
    http_port: Port = ports.GATEWAY_HTTP
    """The pods' data port."""
    grpc_port: Port = ports.GATEWAY_GRPC
    """HTTP/2 in clear text, inside the cluster only."""
    max_concurrent_streams: int = Field(default=4096, ge=1, le=1_000_000)
    """HTTP/2 streams of one client connection."""
    stream_timeout_seconds: int = Field(default=30, ge=1, le=86_400)
    """A request must have arrived in full by then."""
    max_body_bytes: int = Field(default=4 * 2**20, ge=1024, le=64 * 2**20)
    """Largest request body; larger ones are answered with 413."""
    max_answer_bytes: int = Field(default=32 * 2**20, ge=1024, le=256 * 2**20)
    """What a client that does not read its answer may hold of a pod's memory; larger answers pass as the client reads."""
    first_byte_seconds: int = Field(default=30, ge=1, le=86_400)
    """Silence of a streamed answer from the cluster after which the next target is tried (or the stream is cut)."""
    client_idle_seconds: int = Field(default=75, ge=5, le=86_400)
    """Idle client connections are closed after this: longer than the load balancer in front, so that it closes first."""
    trusted_hops: int = Field(default=0, ge=0, le=8)
    """Proxies in front whose x-forwarded-for entry is believed."""
    cache_isolation: Literal["shared", "perKey"] = "shared"
    """perKey: keys share no KV cache (`cache_salt`), so that timing tells a tenant nothing of another's prompts."""
    limits: InboundLimits = InboundLimits()
    """What one client may send."""
    exposure: Exposure = "internal"
    """How the outside reaches the gateway; internal: not at all."""
    node_port: int | None = Field(default=None, ge=30000, le=32767)
    """The port, for exposure nodePort."""
    load_balancer: LoadBalancerSettings = LoadBalancerSettings()
    """For exposure loadBalancer."""
    route: RouteSettings = RouteSettings()
    """For exposures gatewayApi and ingress."""
    tls: TlsSettings = TlsSettings()
    """The certificate."""
    cpu: Cpu = "500m"
    """CPU that a pod requests."""
    memory: Bytes = "512Mi"
    """Memory that a pod requests, and its limit."""
    kthena_router: HostPort = "kthena-router.kthena-system.svc.cluster.local:80"
    """host:port of Kthena's router, for models with backend kthena."""
