"""What the node offers, and how the cluster's parts are told to run."""

import ipaddress
import json
from pathlib import Path

import pytest

from local import tools
from local.cluster import control_plane, node, nodes
from local.cluster.addons.kwok import SimulatedPool
from local.cluster.layout import Layout
from local.cluster.listener import load_balancer

GIB = 1 << 30
ENGINE = 3 * GIB


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(tools, "path", lambda name: Path("/tools", name))
    (tmp_path / "config").mkdir()
    return Layout(tmp_path, ipaddress.IPv4Network("10.203.0.0/30"), 8443)


def test_five_engines_and_small_pods_fit_on_a_large_machine_and_a_sixth_engine_does_not():
    offered = node.allocatable_bytes(24 * GIB)
    assert 5 * ENGINE + 2 * GIB <= offered < 6 * ENGINE


def test_a_smaller_machine_keeps_memory_for_itself():
    assert node.allocatable_bytes(12 * GIB) == 9 * GIB


def test_what_the_kubelet_reserves_leaves_just_what_pods_may_have(place: Layout):
    configuration = node._kubelet_configuration(place, 24 * GIB)
    reserved = configuration["systemReserved"]
    assert isinstance(reserved, dict)
    assert 24 * GIB - int(reserved["memory"]) - node.EVICTION_BYTES == node.allocatable_bytes(24 * GIB)


def test_the_kubelet_asks_the_api_server_who_may_do_what(place: Layout):
    configuration = node._kubelet_configuration(place, 24 * GIB)
    assert configuration["authentication"]["anonymous"] == {"enabled": False}  # type: ignore[index]
    assert configuration["authorization"] == {"mode": "Webhook"}


def test_images_that_no_registry_has_are_never_cleaned_up(place: Layout):
    assert node._kubelet_configuration(place, 24 * GIB)["imageGCHighThresholdPercent"] == 100


def test_the_api_server_lets_nobody_in_without_a_certificate_or_a_signed_token(place: Layout):
    command = control_plane.api_server(place).command
    assert "--anonymous-auth=false" in command
    assert "--authorization-mode=Node,RBAC" in command
    assert not [flag for flag in command if "token-auth-file" in flag or "insecure" in flag]


def test_etcd_wants_a_certificate_of_its_own_authority(place: Layout):
    command = control_plane.etcd(place).command
    assert "--client-cert-auth=true" in command
    assert f"--trusted-ca-file={place.pki}/etcd-ca.crt" in command
    assert not [flag for flag in command if "http://" in flag]


def test_the_load_balancer_listens_on_the_loopback_only_and_restarts_for_another_port(place: Layout):
    service = load_balancer(place)
    listener = json.loads(service.configuration)["static_resources"]["listeners"][0]
    assert listener["address"]["socket_address"] == {"address": "127.0.0.1", "port_value": 8443}
    moved = load_balancer(Layout(place.state, place.subnet, 9443))
    assert moved.command == service.command
    assert moved.fingerprint != service.fingerprint


def test_chips_are_the_resources_with_a_domain():
    offered = {"cpu": "2", "memory": "17Gi", "hugepages-2Mi": "0", "huawei.com/Ascend910": "32"}
    assert nodes.chips({"status": {"allocatable": offered}}) == {"huawei.com/Ascend910": 32}


def test_a_node_without_conditions_is_not_ready():
    assert not nodes.is_ready({})
    assert not nodes.is_ready({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    assert nodes.is_ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})


def test_a_simulated_node_has_the_declared_shape():
    pool = SimulatedPool(
        "ascend",
        3,
        labels={"gpu.pool": "high-memory"},
        chips={"huawei.com/Ascend910": 8},
        architecture="arm64",
        taints=({"key": "npu", "value": "yes", "effect": "NoSchedule"},),
    )
    made = pool.node(2)
    assert made["metadata"]["name"] == "ascend-2"
    assert made["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert made["metadata"]["labels"].items() >= {"kubernetes.io/arch": "arm64", "gpu.pool": "high-memory"}.items()
    assert made["spec"]["taints"] == [{"key": "npu", "value": "yes", "effect": "NoSchedule"}]
    assert pool.status()["allocatable"]["huawei.com/Ascend910"] == "8"
