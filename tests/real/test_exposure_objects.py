"""A real API server takes the objects of every way to reach the gateway in strict mode, with Gateway API's and cert-manager's own CRDs.

Nothing is written but the definitions, for as long as the tests last: each object is a dry run in the namespace `default`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from components.context import Context
from components.exposure import exposure, internal_service
from components.objects import Manifest
from local import cluster as local_cluster
from local.cluster.api import Api
from local.cluster.layout import layout
from local.errors import LocalError
from local.rehearse.cluster import definitions
from local.tools.go import downloaded
from settings.gateway import TlsSettings
from settings.settings import Settings
from tests.envoy.stacks import stack
from tests.real.conftest import ROOT

GATEWAY_API: Final = "sigs.k8s.io/gateway-api"
OLDEST, NEWEST = "v1.4.1", "v1.6.3"
"""Gateway API 1.4 is the first that serves BackendTLSPolicy as v1."""
CERT_MANAGER: Final = ("github.com/cert-manager/cert-manager", "v1.21.1")
NAMESPACE: Final = "default"
PLURALS: Final = {
    "Service": "services",
    "Ingress": "ingresses",
    "HTTPRoute": "httproutes",
    "BackendTLSPolicy": "backendtlspolicies",
    "Certificate": "certificates",
}

HOSTS: Final = ["*.llm.example", "LLM.example"]
ELB: Final = {"kubernetes.io/elb.id": "3c7caa5a-a641-4bff-801a-feace27424b6"}
PUBLIC: Final = {"bandwidth_name": "llm", "bandwidth_size": 5, "bandwidth_sharetype": "PER", "eip_type": "5_bgp"}
AUTOCREATED: Final = {"kubernetes.io/elb.autocreate": json.dumps(PUBLIC)}
BALANCERS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"internal": False},
    "plain with ranges and annotations": {
        "sourceRanges": ["10.0.0.0/8", "2001:db8::/32"],
        "annotations": {"example.com/own": "yes"},
    },
    "NLB inside": {"kind": "eksNlb", "internal": True, "sourceRanges": ["10.0.0.0/8"]},
    "NLB outside": {"kind": "eksNlb", "internal": False},
    "ELB that is there": {"kind": "cceElb", "annotations": ELB},
    "ELB that is made inside": {"kind": "cceElb", "annotations": {"kubernetes.io/elb.autocreate": "{}"}},
    "ELB that is made outside": {"kind": "cceElb", "internal": False, "annotations": AUTOCREATED},
}
ROUTES: Final[dict[str, dict[str, Any]]] = {
    "system's authorities": {"gateway": "edge"},
    "an authority of its own": {"gateway": "edge", "gatewayNamespace": "net", "backendCa": "gateway-ca"},
}
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "internal": {"exposure": "internal"},
    "node port": {"exposure": "nodePort"},
    "node port that is given": {"exposure": "nodePort", "nodePort": 32711},
    **{f"load balancer: {name}": {"exposure": "loadBalancer", "loadBalancer": one} for name, one in BALANCERS.items()},
    "ingress": {"exposure": "ingress", "route": {"className": "nginx"}},
}


@pytest.fixture(scope="module")
def api(cluster: Path) -> Iterator[Api]:
    client = local_cluster.connect(layout())
    yield client
    client.close()


@pytest.fixture(scope="module", params=[OLDEST, NEWEST])
def gateway_api(request: pytest.FixtureRequest, api: Api) -> Iterator[str]:
    folder = downloaded(GATEWAY_API, request.param) / "config" / "crd" / "standard"
    kinds = ("httproutes", "backendtlspolicies")
    with definitions(api, [read(folder / f"gateway.networking.k8s.io_{kind}.yaml") for kind in kinds]):
        yield request.param


@pytest.fixture(scope="module")
def cert_manager(api: Api) -> Iterator[None]:
    folder = downloaded(*CERT_MANAGER) / "deploy" / "crds"
    with definitions(api, [read(folder / "cert-manager.io_certificates.yaml")]):
        yield


def read(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def settings(gateway: dict[str, Any]) -> Settings:
    return stack(gateway={"tls": {"source": "secret", "secretName": "gateway-tls", "hosts": HOSTS}, **gateway})


def objects(these: Settings) -> list[Manifest]:
    context = Context(
        stack="test", environment="dev", namespace=NAMESPACE, images={},
        provider=None,  # pyright: ignore[reportArgumentType]: pure builders don't use it
    )  # fmt: skip
    return [internal_service(these, context), *exposure(these, context)]


def try_out(api: Api, manifest: Manifest) -> None:
    """A strict dry run. Raises LocalError with the API server's reason for refusing."""
    version = manifest["apiVersion"]
    root = "/apis" if "/" in version else "/api"
    api.try_out(manifest, f"{root}/{version}/namespaces/{NAMESPACE}/{PLURALS[manifest['kind']]}")


def documented_certificate() -> dict[str, Any]:
    """The Certificate that docs/gateway.md tells to make, in the namespace of these tests."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "gateway.md").read_text(), re.MULTILINE | re.DOTALL)
    [found] = [one for one in map(yaml.safe_load, blocks) if one.get("kind") == "Certificate"]
    return {**found, "metadata": {**found["metadata"], "namespace": NAMESPACE}}


def with_a_slip(manifest: Manifest) -> dict[str, Any]:
    return {**manifest, "spec": {**manifest["spec"], "slip": True}}


@pytest.mark.parametrize("gateway", VARIANTS.values(), ids=VARIANTS)
def test_every_object_of_a_service_or_an_ingress_is_accepted(gateway: dict[str, Any], api: Api):
    manifests = objects(settings(gateway))
    assert len(manifests) == (1 if gateway["exposure"] == "internal" else 2)
    for manifest in manifests:
        try_out(api, manifest)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_every_object_of_a_gateway_api_route_is_accepted(route: dict[str, Any], gateway_api: str, api: Api):
    manifests = objects(settings({"exposure": "gatewayApi", "route": route}))
    assert [manifest["kind"] for manifest in manifests] == ["Service", "HTTPRoute", "BackendTLSPolicy"]
    for manifest in manifests:
        try_out(api, manifest)


def test_the_documented_certificate_is_accepted_and_fills_the_gateways_secret(cert_manager: None, api: Api):
    certificate = documented_certificate()
    try_out(api, certificate)
    assert certificate["spec"]["secretName"] == TlsSettings().secret_name


def test_a_wrong_field_of_a_service_or_an_ingress_is_refused(api: Api):
    for manifest in objects(settings(VARIANTS["ingress"])):
        with pytest.raises(LocalError, match=r"spec\.slip"):
            try_out(api, with_a_slip(manifest))


def test_a_wrong_field_of_a_route_is_refused(gateway_api: str, api: Api):
    for manifest in objects(settings({"exposure": "gatewayApi"})):
        with pytest.raises(LocalError, match=r"spec\.slip"):
            try_out(api, with_a_slip(manifest))


def test_a_wrong_field_of_a_certificate_is_refused(cert_manager: None, api: Api):
    with pytest.raises(LocalError, match=r"spec\.slip"):
        try_out(api, with_a_slip(documented_certificate()))
