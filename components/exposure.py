"""How the gateway is reached: inside the cluster always, and from outside in one of four ways."""

import json
from typing import Any, Final

from components.context import Context
from components.envoy.filters import HEALTH_PATH
from components.envoy.process import longest_request
from components.objects import Manifest
from components.pods.gateway import SELECTOR, tls_secret
from rules import elb, names, ports
from settings.gateway import LoadBalancerSettings
from settings.settings import Settings

PUBLIC_PORT: Final = 443
_COMPONENT: Final = "gateway"


def internal_service(settings: Settings, context: Context) -> Manifest:
    """For callers inside the cluster and for scraping."""
    gateway = settings.gateway
    return _service(
        names.GATEWAY, context, {},
        {
            "type": "ClusterIP",
            "ports": [
                {"name": "http", "port": gateway.http_port, "targetPort": "http"},
                {"name": "grpc", "port": gateway.grpc_port, "targetPort": "grpc", "appProtocol": "kubernetes.io/h2c"},
                {"name": "metrics", "port": ports.GATEWAY_METRICS, "targetPort": "metrics"},
            ],
        },
    )  # fmt: skip


def exposure(settings: Settings, context: Context) -> list[Manifest]:
    """The objects of `gateway.exposure`; none for internal. Only the port with TLS is exposed."""
    match settings.gateway.exposure:
        case "nodePort":
            return [_node_port(settings, context)]
        case "loadBalancer":
            return [_load_balancer(settings, context)]
        case "gatewayApi":
            return [_http_route(settings, context), _backend_tls(settings, context)]
        case "ingress":
            return [_ingress(settings, context)]
        case _:
            return []


def _node_port(settings: Settings, context: Context) -> Manifest:
    port = {"name": "https", "port": PUBLIC_PORT, "targetPort": "http"}
    if settings.gateway.node_port:
        port["nodePort"] = settings.gateway.node_port
    return _service(names.GATEWAY_PUBLIC, context, {}, {"type": "NodePort", "ports": [port]})


def _load_balancer(settings: Settings, context: Context) -> Manifest:
    balancer = settings.gateway.load_balancer
    spec: dict[str, Any] = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "ports": [{"name": "https", "port": PUBLIC_PORT, "targetPort": "http"}],
    }
    if balancer.source_ranges:
        spec["loadBalancerSourceRanges"] = list(balancer.source_ranges)
    annotations = load_balancer_annotations(balancer, longest_request(settings))
    return _service(names.GATEWAY_PUBLIC, context, annotations, spec)


def load_balancer_annotations(balancer: LoadBalancerSettings, longest: int) -> dict[str, str]:
    """What the cloud's controller reads; the health check uses the gateway's health port, which fails first on a drain.

    Names: kubernetes-sigs/aws-load-balancer-controller (NLB) and Huawei CCE's documentation of Services (ELB, `rules/elb.py`).
    """
    made = elb.made(balancer.annotations, balancer.internal) if balancer.kind == "cceElb" else {}
    return _of_kind(balancer, longest) | balancer.annotations | made


def _of_kind(balancer: LoadBalancerSettings, longest: int) -> dict[str, str]:
    if balancer.kind == "eksNlb":
        prefix = "service.beta.kubernetes.io/aws-load-balancer"
        return {
            f"{prefix}-type": "external",
            f"{prefix}-nlb-target-type": "ip",
            f"{prefix}-scheme": "internal" if balancer.internal else "internet-facing",
            f"{prefix}-healthcheck-protocol": "http",
            f"{prefix}-healthcheck-port": str(ports.GATEWAY_HEALTH),
            f"{prefix}-healthcheck-path": HEALTH_PATH,
            f"{prefix}-healthcheck-interval": "5",
            f"{prefix}-target-group-attributes": (
                f"preserve_client_ip.enabled=true,deregistration_delay.timeout_seconds={longest}"
            ),
        }
    if balancer.kind == "cceElb":
        check = {"protocol": "TCP", "delay": "5", "timeout": "3", "max_retries": "2"}
        return {
            "kubernetes.io/elb.class": "performance",
            "kubernetes.io/elb.health-check-flag": "on",
            "kubernetes.io/elb.health-check-option": json.dumps(check),
        }
    return {}


def _http_route(settings: Settings, context: Context) -> Manifest:
    route = settings.gateway.route
    parent = {"name": route.gateway, "namespace": route.gateway_namespace or context.namespace}
    rule = {
        "backendRefs": [{"name": names.GATEWAY, "port": settings.gateway.http_port}],
        "timeouts": {"request": "0s"},
    }
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": context.metadata(names.GATEWAY, _COMPONENT),
        "spec": {"parentRefs": [parent], "hostnames": list(settings.gateway.tls.hosts), "rules": [rule]},
    }


def _backend_tls(settings: Settings, context: Context) -> Manifest:
    """The Gateway speaks TLS to us, too: keys never cross the cluster in clear text."""
    authority = settings.gateway.route.backend_ca
    trust: dict[str, Any] = (
        {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": authority}]}
        if authority
        else {"wellKnownCACertificates": "System"}
    )
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "BackendTLSPolicy",
        "metadata": context.metadata(names.GATEWAY, _COMPONENT),
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": names.GATEWAY, "sectionName": "http"}],
            "validation": {"hostname": settings.gateway.tls.server_name, **trust},
        },
    }


def _ingress(settings: Settings, context: Context) -> Manifest:
    gateway = settings.gateway
    backend = {"service": {"name": names.GATEWAY, "port": {"name": "http"}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    hosts = list(gateway.tls.hosts)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": context.metadata(names.GATEWAY, _COMPONENT, annotations=_ingress_annotations(settings)),
        "spec": {
            "ingressClassName": gateway.route.class_name,
            "tls": [{"hosts": hosts, "secretName": tls_secret(settings)}],
            "rules": [{"host": host, "http": {"paths": paths}} for host in hosts],
        },
    }


def _ingress_annotations(settings: Settings) -> dict[str, str]:
    """For ingress-nginx: TLS to us, streams unbuffered, and limits no narrower than our own."""
    prefix = "nginx.ingress.kubernetes.io"
    longest = str(longest_request(settings))
    return {
        f"{prefix}/backend-protocol": "HTTPS",
        f"{prefix}/proxy-buffering": "off",
        f"{prefix}/proxy-request-buffering": "off",
        f"{prefix}/proxy-body-size": str(settings.gateway.max_body_bytes),
        f"{prefix}/proxy-read-timeout": longest,
        f"{prefix}/proxy-send-timeout": longest,
    }


def _service(name: str, context: Context, annotations: dict[str, str], spec: dict[str, Any]) -> Manifest:
    more = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": context.metadata(name, _COMPONENT, **more),
        "spec": {**spec, "selector": SELECTOR},
    }
