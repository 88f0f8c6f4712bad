"""One way in: the gateway, by TLS. Nothing of ours is reachable beside it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.objects import Object
from policies.rule import Facts, Finding, Rule
from policies.unknown import text
from rules import names

_SELECTS: Final = ("moonstack.dev/part", "app.kubernetes.io/name", "app")
_OPEN: Final = ("NodePort", "LoadBalancer")


def only_the_gateway(one: Object, facts: Facts) -> Iterator[Finding]:
    """Services of type NodePort or LoadBalancer, Ingresses and routes lead to the gateway alone."""
    spec: Mapping[str, Any] = one.body.get("spec") or {}
    if one.kind == "Service":
        if (text(spec.get("type")) in _OPEN or spec.get("externalIPs")) and not _is_gateway(one):
            yield Finding(
                one, "spec.type", "opens a part that must stay inside; use ClusterIP, clients enter by the gateway"
            )
    elif one.kind == "Ingress":
        for path, backend in _ingress_backends(spec):
            if (name := text((backend.get("service") or {}).get("name"))) != names.GATEWAY:
                yield Finding(
                    one, path, f"leads to {name or 'a resource'}; only the Service {names.GATEWAY} may be exposed"
                )
    elif one.kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"):
        for index, rule in enumerate(spec.get("rules") or ()):
            for position, backend in enumerate(rule.get("backendRefs") or ()):
                if text(backend.get("name")) != names.GATEWAY:
                    path = f"spec.rules[{index}].backendRefs[{position}]"
                    yield Finding(
                        one, path, f"leads to {backend.get('name')}; only the Service {names.GATEWAY} may be exposed"
                    )
    for pod in one.pods:
        for path, container in pod.containers():
            for index, port in enumerate(container.get("ports") or ()):
                if port.get("hostPort"):
                    yield Finding(one, f"{path}.ports[{index}].hostPort", "opens the node; remove it")


def exposed_with_tls(one: Object, facts: Facts) -> Iterator[Finding]:
    """What is exposed speaks TLS: keys travel in a header."""
    spec: Mapping[str, Any] = one.body.get("spec") or {}
    if one.kind == "Service" and text(spec.get("type")) in _OPEN and _is_gateway(one):
        if facts.settings is not None and facts.settings.gateway.tls.source == "none":
            yield Finding(one, "spec.type", "exposes the gateway without TLS; set gateway.tls.source")
    elif one.kind == "Ingress" and not spec.get("tls"):
        yield Finding(one, "spec.tls", "is missing; keys would travel in clear text")
    elif one.kind == "Gateway":
        for index, listener in enumerate(spec.get("listeners") or ()):
            if text(listener.get("protocol")) in ("HTTP", "TCP"):
                yield Finding(one, f"spec.listeners[{index}].protocol", "is clear text; use HTTPS or TLS")


def _is_gateway(one: Object) -> bool:
    """By the pods that it selects: a label of its own says nothing of where it leads."""
    selector = (one.body.get("spec") or {}).get("selector") or {}
    return names.GATEWAY in [text(selector.get(label)) for label in _SELECTS]


def _ingress_backends(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if spec.get("defaultBackend"):
        yield "spec.defaultBackend", spec["defaultBackend"]
    for index, rule in enumerate(spec.get("rules") or ()):
        for position, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield f"spec.rules[{index}].http.paths[{position}].backend", path.get("backend") or {}


RULES: Final = (
    Rule(
        id="only-the-gateway-exposed",
        concern="network",
        severity="critical",
        description="Nothing but the gateway is reachable from outside: not engines, routers or the store.",
        each=only_the_gateway,
        reads_pods=True,
    ),
    Rule(
        id="exposed-with-tls",
        concern="network",
        severity="critical",
        description="What is exposed speaks TLS.",
        each=exposed_with_tls,
    ),
)
