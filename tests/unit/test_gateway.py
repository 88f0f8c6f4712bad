"""What the program declares for the gateway."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from bench.simulated.gateway import fake_key
from components.context import Context
from components.envoy.files import config_digest, gateway_files, restart_digest
from components.envoy.service_config import service_files
from components.exposure import exposure, internal_service
from components.gateway import Gateway, GatewayArgs, deployment, local_certificate
from rules import names
from rules.elb import AUTOCREATE
from rules.elb import ID as ELB_ID
from settings.errors import SettingsError
from settings.settings import Settings
from tests.envoy.stacks import CLIENTS, stack
from tests.unit.pulumi_engine import Registered, deploy, holds_secret, secret

TLS = {"tls": {"source": "secret", "hosts": ["llm.example"]}}

PUBLIC = {"bandwidth_name": "llm", "bandwidth_size": 5, "bandwidth_sharetype": "PER", "eip_type": "5_bgp"}


def elb(annotations: dict[str, str], internal: bool = True) -> dict[str, Any]:
    balancer = {"kind": "cceElb", "internal": internal, "annotations": annotations}
    return {**TLS, "exposure": "loadBalancer", "loadBalancer": balancer}


def plain_balancer(**balancer: Any) -> dict[str, Any]:
    return {**TLS, "exposure": "loadBalancer", "loadBalancer": balancer}


def declared(settings: Settings, **args: Any) -> list[Registered]:
    return deploy(lambda context: Gateway("gateway", GatewayArgs(settings=settings, **args), context))


def of(found: list[Registered], kind: str, name: str) -> dict[str, Any]:
    return next(one.inputs for one in found if one.type.endswith(f":{kind}") and one.name == name)


def context() -> Context:
    return Context(
        stack="test", environment="dev", namespace="test", images={"gateway": "gateway:1"},
        provider=None,  # pyright: ignore[reportArgumentType]: pure builders don't use it
    )  # fmt: skip


def container(settings: Settings) -> dict[str, Any]:
    return deployment(settings, context(), "digest")["spec"]["template"]["spec"]["containers"][0]


def test_everything_the_gateway_needs_is_declared():
    found = declared(stack(gateway=TLS))
    kinds = {(one.type.rpartition(":")[2], one.name) for one in found}
    assert kinds >= {
        ("ConfigMap", names.GATEWAY_CONFIG),
        ("ConfigMap", names.SERVICE_CONFIG),
        ("Service", names.GATEWAY),
        ("Deployment", names.GATEWAY),
        ("PodDisruptionBudget", names.GATEWAY),
    }


def test_the_local_certificate_is_a_secret_and_nothing_else_turns_secret():
    found = declared(
        stack(gateway={"tls": {"source": "localCa"}}), certificate={"tls.crt": "certificate", "tls.key": fake_key()}
    )
    data = of(found, "Secret", names.GATEWAY_TLS)["stringData"]
    assert secret(data) or all(secret(value) for value in data.values())
    assert not any(holds_secret(one.inputs) for one in found if not one.type.endswith(":Secret"))


def test_a_pod_is_ready_by_a_request_on_its_data_port():
    probe = container(stack(gateway=TLS))["readinessProbe"]["httpGet"]
    assert probe == {"path": "/healthz", "port": "http", "scheme": "HTTPS"}


def test_keys_are_mounted_as_whole_folders_and_never_in_the_environment():
    envoy = container(stack(gateway=TLS, channel={}))
    mounts = {mount["name"]: mount for mount in envoy["volumeMounts"]}
    assert {"client-keys", "channel-keys", "certificate"} <= mounts.keys()
    assert not any("subPath" in mount for mount in mounts.values())
    assert "env" not in envoy


def test_a_pod_waits_for_its_clients_keys_and_not_for_the_channels():
    volumes = {
        one["name"]: one
        for one in deployment(stack(channel={}), context(), "digest")["spec"]["template"]["spec"]["volumes"]
    }
    assert volumes["channel-keys"]["secret"].get("optional")
    assert not volumes["client-keys"]["secret"].get("optional")


def test_models_keys_and_limits_reach_running_pods_and_listener_settings_replace_them():
    before = restart_digest(gateway_files(stack(channel={})))
    keys = ({"id": "client", "purpose": "client", "owner": "test", "qps": 3}, CLIENTS[1])
    assert restart_digest(gateway_files(stack(channel={}, keys=keys))) == before
    assert restart_digest(gateway_files(stack(channel={"retry": {"maxAttempts": 5}}))) == before
    assert restart_digest(gateway_files(stack(channel={}, gateway={"maxBodyBytes": 2048}))) != before


def test_where_a_scaler_owns_the_gateway_its_minimum_is_to_begin_with():
    assert deployment(stack(gateway={"replicas": 3}), context(), "")["spec"]["replicas"] == 3
    scaled = stack(autoscaling={"gateway": {"enabled": True}, "engines": {"enabled": False}})
    assert deployment(scaled, context(), "")["spec"]["replicas"] == scaled.autoscaling.gateway.min_replicas


def test_the_grace_period_covers_list_removal_and_the_longest_request():
    spec = deployment(stack(), context(), "")["spec"]["template"]["spec"]
    script = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2]
    assert "POST /healthcheck/fail" in script and "sleep 10" in script and "seq 10" in script
    assert spec["terminationGracePeriodSeconds"] == 10 + 10 + 10


def test_a_node_port_exposes_the_tls_port_alone():
    settings = stack(gateway={**TLS, "exposure": "nodePort", "nodePort": 30443})
    service = exposure(settings, context())[0]
    assert service["spec"]["ports"] == [{"name": "https", "port": 443, "targetPort": "http", "nodePort": 30443}]
    assert {port["name"] for port in internal_service(settings, context())["spec"]["ports"]} == {
        "http",
        "grpc",
        "metrics",
    }


@pytest.mark.parametrize(
    ("balancer", "annotation", "value"),
    [
        ({"kind": "eksNlb"}, "service.beta.kubernetes.io/aws-load-balancer-healthcheck-port", "9103"),
        ({"kind": "eksNlb"}, "service.beta.kubernetes.io/aws-load-balancer-scheme", "internal"),
        ({"kind": "cceElb", "annotations": {"kubernetes.io/elb.id": "x"}}, "kubernetes.io/elb.health-check-flag", "on"),
        (
            {"kind": "cceElb", "annotations": {AUTOCREATE: '{"name":"llm"}'}},
            AUTOCREATE,
            '{"type": "inner", "name": "llm"}',
        ),
        (
            {"kind": "cceElb", "internal": False, "annotations": {AUTOCREATE: json.dumps(PUBLIC)}},
            AUTOCREATE,
            json.dumps({"type": "public"} | PUBLIC),
        ),
        ({"annotations": {"example.com/own": "yes"}}, "example.com/own", "yes"),
    ],
)
def test_a_load_balancer_carries_what_its_controller_reads(balancer: dict[str, Any], annotation: str, value: str):
    settings = stack(gateway={**TLS, "exposure": "loadBalancer", "loadBalancer": balancer})
    service = exposure(settings, context())[0]
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["metadata"]["annotations"][annotation] == value


@pytest.mark.parametrize(
    "balancer",
    [
        {"sourceRanges": ["10.0.0.0/8"]},
        {"sourceRanges": ["192.168.7.0/24", "fd00::/8"]},
        {"sourceRanges": ["0.0.0.0/0"], "internal": False},
        {"sourceRanges": ["8.8.8.0/24"], "annotations": {"example.com/inside": "yes"}},
    ],
)
def test_source_ranges_limit_who_connects(balancer: dict[str, Any]):
    settings = stack(gateway=plain_balancer(**balancer))
    assert exposure(settings, context())[0]["spec"]["loadBalancerSourceRanges"] == balancer["sourceRanges"]


def test_a_gateway_api_route_goes_on_with_tls():
    settings = stack(gateway={**TLS, "exposure": "gatewayApi", "route": {"gateway": "edge", "gatewayNamespace": "net"}})
    route, policy = exposure(settings, context())
    assert route["spec"]["parentRefs"] == [{"name": "edge", "namespace": "net"}]
    assert route["spec"]["hostnames"] == ["llm.example"]
    assert policy["spec"]["validation"] == {"hostname": "llm.example", "wellKnownCACertificates": "System"}


def test_a_gateway_api_route_trusts_the_authority_that_is_named():
    settings = stack(gateway={**TLS, "exposure": "gatewayApi", "route": {"gateway": "edge", "backendCa": "own-ca"}})
    trusted = exposure(settings, context())[1]["spec"]["validation"]
    assert trusted == {
        "hostname": "llm.example",
        "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "own-ca"}],
    }


def test_the_named_certificate_is_what_the_pods_and_an_ingress_use():
    tls = {"source": "secret", "secretName": "own-tls", "hosts": ["llm.example"]}
    settings = stack(gateway={"tls": tls, "exposure": "ingress"})
    volumes = deployment(settings, context(), "digest")["spec"]["template"]["spec"]["volumes"]
    assert [one["secret"]["secretName"] for one in volumes if one["name"] == "certificate"] == ["own-tls"]
    assert exposure(settings, context())[0]["spec"]["tls"][0]["secretName"] == "own-tls"


def test_a_pod_asks_for_the_cpu_and_memory_of_the_settings():
    resources = container(stack(gateway={"cpu": "3", "memory": "700Mi"}))["resources"]
    assert resources["requests"]["cpu"] == "3"
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == "700Mi"


@pytest.mark.parametrize(
    ("hosts", "name"),
    [
        (["llm.example", "b.example"], "llm.example"),
        (["*.llm.example", "b.example"], "b.example"),
        (["*.llm.example"], "gateway.llm.example"),
    ],
)
def test_a_route_expects_one_exact_name_of_the_certificate(hosts: list[str], name: str):
    settings = stack(gateway={"tls": {"source": "secret", "hosts": hosts}, "exposure": "gatewayApi"})
    route, policy = exposure(settings, context())
    assert route["spec"]["hostnames"] == hosts
    assert policy["spec"]["validation"]["hostname"] == name


def test_an_ingress_keeps_streams_unbuffered_and_speaks_tls_to_the_gateway():
    settings = stack(gateway={**TLS, "exposure": "ingress", "route": {"className": "edge"}})
    ingress = exposure(settings, context())[0]
    assert ingress["spec"]["ingressClassName"] == "edge"
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-buffering"] == "off"
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/backend-protocol"] == "HTTPS"


@pytest.mark.parametrize(
    ("gateway", "words"),
    [
        ({"exposure": "nodePort"}, "gateway.tls.source: 'none': exposure nodePort needs TLS"),
        ({"grpcPort": 9102}, "gateway.grpcPort: 9102: another listener"),
        ({**TLS, "exposure": "loadBalancer", "loadBalancer": {"kind": "cceElb"}}, "kind cceElb needs a load balancer"),
        (elb({ELB_ID: "x", AUTOCREATE: "{}"}), "an ELB is there already or is to be made, not both"),
        (elb({AUTOCREATE: "inner"}), f"annotations.{AUTOCREATE}: 'inner': is not JSON"),
        (elb({AUTOCREATE: "[]"}), "is not a JSON object"),
        (elb({AUTOCREATE: '{"type":"public"}'}), "type: 'public': loadBalancer.internal is true, which is type inner"),
        (
            elb({AUTOCREATE: '{"type":"inner"}'}, internal=False),
            "type: 'inner': loadBalancer.internal is false, which is type public",
        ),
        (
            elb({AUTOCREATE: '{"bandwidth_name":"b","bandwidth_size":5}'}, internal=False),
            "a public ELB needs bandwidth_sharetype, eip_type",
        ),
        (plain_balancer(), "gateway.loadBalancer.internal: True: kind plain tells no controller"),
        *(
            (
                plain_balancer(sourceRanges=["10.0.0.0/8", text]),
                f"gateway.loadBalancer.sourceRanges[1]: '{text}': loadBalancer.internal is true",
            )
            for text in ("0.0.0.0/0", "8.8.8.0/24", "10.0.0.0/7", "::/0", "2001:db8::/32")
        ),
        *(
            (
                {"tls": {"hosts": ["llm.example", host]}, "exposure": exposure},
                f"gateway.tls.hosts[1]: '{host}': exposure {exposure} is for DNS names that",
            )
            for exposure in ("ingress", "gatewayApi")
            for host in ("localhost", "a.localhost", "127.0.0.1", "::1")
        ),
        ({"tls": {"source": "secret"}, "exposure": "ingress"}, "gateway.tls.hosts[0]: 'localhost'"),
        (
            {"tls": {"source": "secret"}, "exposure": "loadBalancer"},
            "gateway.tls.hosts: ['localhost']: clients of a load balancer",
        ),
        (
            {"tls": {"hosts": ["llm.example", "10.0.0.1"]}, "exposure": "ingress"},
            "gateway.tls.hosts[1]: '10.0.0.1': exposure ingress is for DNS names",
        ),
        (
            {"tls": {"hosts": ["2001:db8::1"]}, "exposure": "gatewayApi"},
            "gateway.tls.hosts[0]: '2001:db8::1': exposure gatewayApi is for DNS names",
        ),
        (
            {"tls": {"hosts": [f"h{index}.example" for index in range(17)]}, "exposure": "gatewayApi"},
            "gateway.tls.hosts: 17: an HTTPRoute has at most 16 host names",
        ),
    ],
)
def test_a_gateway_that_would_be_unsafe_is_refused(gateway: dict[str, Any], words: str):
    with pytest.raises(SettingsError) as caught:
        stack(gateway=gateway)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ({"baseUrl": "http://channel.example"}, "must be https"),
        ({"retry": {"backoffBaseMs": 3000}}, "is less than backoffBaseMs 3000"),
        ({"ratelimit": {"qpsPerPod": 120, "burst": 100}}, "is less than qpsPerPod 120"),
    ],
)
def test_a_channel_whose_numbers_contradict_each_other_is_refused(channel: dict[str, Any], words: str):
    with pytest.raises(SettingsError) as caught:
        stack(channel=channel)
    assert words in str(caught.value)


def test_a_name_that_means_two_things_is_refused():
    with pytest.raises(
        SettingsError, match=r"channelModels\.group: 'chat': a model of this stack has this name already"
    ):
        stack(channelModels={"group": "chat"})


def test_the_service_configuration_has_the_documents_values_and_only_the_name_of_the_key():
    files = service_files(stack(channel={}))
    toml = tomllib.loads(files["config.toml"])
    assert toml["server"] == {
        "grpc_port": 50051, "http_port": 9090, "max_concurrent_streams": 4096, "stream_timeout_seconds": 30,
    }  # fmt: skip
    assert toml["channel"]["api_key_env"] == "TAOTOKEN_API_KEY"
    assert toml["channel"]["base_url"] == "https://taotoken.net/api"
    assert toml["channel"]["retry"]["retry_on_status"] == [429, 500, 502, 503, 504]
    assert toml["channel"]["ratelimit"] == {"qps_per_pod": 120, "burst": 240}
    assert toml["moe"]["expert_load_threshold"] == 0.85
    assert toml["chip"]["preference"] == ["ascend", "nvidia", "xuantie"]
    assert toml["autoscaler"]["max_replicas"] == 256
    document = json.loads(files["settings.json"])
    assert document["endpoints"]["chat"] == "https://taotoken.net/api/v1/chat/completions"
    assert [model["alias"] for model in document["models"]] == [f"moe-expert-{letter}" for letter in "abcd"]
    assert document["fallback"] == {"enabled": True, "order": [f"moe-expert-{letter}" for letter in "acbd"]}


def test_the_program_stops_when_envoy_refuses_the_configuration(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("components.envoy.files.bootstrap.NODE", {"id": "gateway", "clutser": "moonstack"})
    with pytest.raises(Exception, match="clutser"):
        declared(stack())


def test_the_configuration_map_stays_far_below_the_limit_of_one_mebibyte():
    found = declared(stack(channel={}))
    data = of(found, "ConfigMap", names.GATEWAY_CONFIG)["data"]
    assert sum(len(text) for text in data.values()) < 512 * 1024


def test_every_answer_tells_which_configuration_is_served_and_any_change_is_another():
    settings = stack()
    route_table = yaml.safe_load(gateway_files(settings)["routes.yaml"])["resources"][0]
    header = route_table["response_headers_to_add"][0]["header"]
    assert header == {"key": names.CONFIG_HEADER, "value": config_digest(settings)}
    renamed = settings.model_copy(update={"models": (settings.models[0].model_copy(update={"name": "other"}),)})
    assert config_digest(renamed) != config_digest(settings)


def test_the_local_certificate_is_read_for_the_local_authority_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    local = stack(gateway={"tls": {"source": "localCa"}})
    assert local_certificate(stack(gateway=TLS)) is None
    with pytest.raises(pulumi.RunError, match="run `make up`"):
        local_certificate(local)
    (tmp_path / "gateway").mkdir()
    for name in ("tls.crt", "tls.key"):
        (tmp_path / "gateway" / name).write_text(name)
    assert local_certificate(local) == {"tls.crt": "tls.crt", "tls.key": "tls.key"}
