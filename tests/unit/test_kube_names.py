"""Labels, taints and extended resources are spelt as Kubernetes takes them."""

from typing import Any

import pytest

from rules.kube_names import extended_resource_fault, label_key_fault, label_value_fault
from settings.settings import Settings
from tests.unit.test_settings import dev, lines


@pytest.mark.parametrize("text", ["", "a", "0", "a-b_c.D", "x" * 63])
def test_label_values_of_kubernetes_are_taken(text: str):
    assert label_value_fault(text) is None


@pytest.mark.parametrize("text", ["a b", "-1Gi", "a.", "_", "x" * 64, "名前", "a\n", "a/b"])
def test_what_is_no_label_value_is_refused(text: str):
    assert "is no label value" in (label_value_fault(text) or "")


@pytest.mark.parametrize(
    "text", ["a", "topology.kubernetes.io/zone", "huawei.com/Ascend910", "a/B_c.d", f"{'x' * 253}/{'y' * 63}"]
)
def test_label_keys_of_kubernetes_are_taken(text: str):
    assert label_key_fault(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "/", "/a", "a/", "a b", "名前🙂", "x" * 64, "x" * 5000, f"{'x' * 254}/y", "A/b", "...../x", "a/b/c", "-a/b"],
)
def test_what_is_no_label_key_is_refused_with_a_fix(text: str):
    assert "; write " in (label_key_fault(text) or "")


@pytest.mark.parametrize("text", ["rdma/hca_shared_devices_a", "example.com/Device.1", f"{'x' * 244}/y"])
def test_extended_resources_of_kubernetes_are_taken(text: str):
    assert extended_resource_fault(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "memory",
        "kubernetes.io/x",
        "sub.kubernetes.io/x",
        "...../x",
        "requests.a/b",
        f"rdma/{'x' * 200}",
        f"{'x' * 245}/y",
        "",
    ],
)
def test_what_is_no_extended_resource_is_refused_with_a_fix(text: str):
    assert "; " in (extended_resource_fault(text) or "")


WRONG: dict[str, Any] = {
    "nodePools.0.poolLabel": ["a b", "", "-1Gi"],
    "nodePools.0.topologyKey": ["名前🙂", "", "x" * 5000],
    "nodePools.0.rdmaResource": ["kubernetes.io/x", "...../x", "requests.a/b", f"rdma/{'x' * 200}"],
    "nodePools.0.tolerations": [[{"key": ""}], [{"key": "a b"}], [{"key": "a", "value": "a b"}]],
    "nodePools.0.nodeClassRef": [
        {"group": "a b", "kind": "Class", "name": "x"},
        {"group": "a.b", "kind": "a class", "name": "x"},
    ],
    "observability.monitorLabels": [{"a b": "c"}, {"a": "b c"}],
    "observability.dashboardLabel": ["", "a b"],
    "gateway.loadBalancer.annotations": [{"a b": "c"}],
    "keys.region": ["a b", ""],
}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in WRONG.items() for value in values])
def test_a_setting_that_becomes_a_label_a_taint_or_a_resource_is_spelt_as_one(path: str, value: Any):
    values = dev()
    parent: Any = values
    *folders, name = path.split(".")
    for folder in folders:
        parent = parent[int(folder)] if isinstance(parent, list) else parent.setdefault(folder, {})
    parent[name] = value
    assert any(f".{name}" in line for line in lines(values))


def test_settings_spelt_as_kubernetes_takes_them_are_valid():
    values = dev()
    values["nodePools"][0] |= {
        "poolLabel": "high-compute",
        "topologyKey": "topology.kubernetes.io/zone",
        "rdmaResource": "rdma/hca_shared_devices_a",
        "tolerations": [{"key": "huawei.com/Ascend910"}, {"key": "dedicated", "value": ""}],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    }
    values["observability"] = {"monitorLabels": {"release": "prometheus", "example.com/x": ""}}
    values["keys"]["region"] = "us-gov-west-1"
    Settings.from_mapping(values)
