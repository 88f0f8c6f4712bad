"""Rendering and rehearsal: the parts that need no cluster."""

from pathlib import Path
from typing import Any

import pytest

from components.kthena.serving import model_serving
from local.errors import LocalError
from local.rehearse.expand import pods_of
from local.rehearse.nodes import simulated_pools
from local.rehearse.overrides import NAMESPACE, WHY, overrides
from local.rehearse.render import file_name, manifests_of, render, require_ours
from local.rehearse.report import Report, pool_reports, unplaced
from settings.settings import Settings
from tests.unit.serving.stacks import stack
from tests.unit.serving.test_kthena_objects import CONTEXT, built


def serving(values: dict[str, Any]) -> dict[str, Any]:
    settings, plans = built(values)
    return model_serving(settings.models[0], plans, settings.kthena, CONTEXT).manifest()


def pod(name: str, pool: str, chips: int, resource: str, node: str | None, why: str = "") -> dict[str, Any]:
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"moonstack.dev/pool": pool},
            "containers": [{"resources": {"requests": {resource: str(chips)}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {} if node else {"conditions": [refusal]},
    }


def test_a_serving_becomes_the_pods_that_kthena_would_make():
    values = stack()
    values["models"][0]["groups"] = 2
    pods = list(pods_of(serving(values)))
    assert [each["metadata"]["name"] for each in pods] == [
        "big-0-prefill-0-0",
        "big-0-decode-0-0",
        "big-1-prefill-0-0",
        "big-1-decode-0-0",
    ]
    assert {each["metadata"]["labels"]["modelserving.volcano.sh/group-name"] for each in pods} == {"big-0", "big-1"}
    assert {each["spec"]["schedulerName"] for each in pods} == {"volcano"}


def test_an_engine_of_two_nodes_becomes_an_entry_and_a_worker():
    values = stack()
    values["models"][0]["prefill"]["nodes"] = 2
    entry, worker = list(pods_of(serving(values)))[:2]
    variables = [
        {each["name"]: each.get("value") for each in one["spec"]["containers"][0]["env"]} for one in (entry, worker)
    ]
    assert variables[0]["WORKER_INDEX"] == "0" and variables[1]["WORKER_INDEX"] == "1"
    assert variables[0]["ENTRY_ADDRESS"] == variables[1]["ENTRY_ADDRESS"] == "big-0-prefill-0-0.serving"
    assert entry["metadata"]["labels"]["modelserving.volcano.sh/entry"] == "true"
    assert "modelserving.volcano.sh/entry" not in worker["metadata"]["labels"]


def test_simulated_nodes_carry_what_pods_select_and_device_plugins_set():
    pools = {pool.name: pool for pool in simulated_pools(Settings.from_mapping(stack()))}
    npu = pools["rehearsal-npu"]
    assert npu.count == 4
    assert npu.chips == {"huawei.com/Ascend910": 8}
    assert npu.architecture == "arm64"
    assert npu.labels["accelerator"] == "huawei-Ascend910"
    assert npu.labels["moonstack.dev/pool"] == "npu"


def test_the_report_counts_chips_and_names_what_is_missing():
    settings = Settings.from_mapping(stack())
    resource = "huawei.com/Ascend910"
    pods = [
        pod("a", "npu", 8, resource, "rehearsal-npu-0"),
        pod("b", "npu", 4, resource, "rehearsal-npu-1"),
        pod("c", "npu", 8, resource, None, "4 Insufficient huawei.com/Ascend910"),
    ]
    npu = next(pool for pool in pool_reports(settings, pods) if pool.pool == "npu")
    assert (npu.chips, npu.used, npu.free, npu.missing) == (32, 12, 20, 8)
    assert npu.surge == 2, "two whole nodes are free for pods of eight chips"
    assert npu.cost_per_hour == 12 * 12.0
    lost = unplaced(settings, pods)
    assert [(each.pod, each.pool, each.chips) for each in lost] == [("c", "npu", 8)]
    report = Report("x", 1.0, 3, 2, False, pool_reports(settings, pods), lost)
    assert not report.ok and report.document()["cost_per_hour"] == 144.0


def test_overrides_are_few_and_each_is_explained():
    values = stack()
    changed = overrides(Settings.from_mapping(values), values)
    assert set(changed) == set(WHY) - {"keys"}
    assert changed["cluster"]["namespace"] == NAMESPACE
    assert Settings.from_mapping(values | changed).models == Settings.from_mapping(values).models


def test_a_rendered_certificate_names_its_parts_as_the_api_server_wants():
    inputs = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": "[secret]", "metadata": {"name": "t"},
    }  # fmt: skip
    (found,) = manifests_of([{"newState": {"type": "kubernetes:core/v1:Secret", "inputs": inputs}}])
    assert found["data"] == {"tls.crt": "", "tls.key": ""}


@pytest.mark.parametrize("name", ["notes.txt", "values.yaml", "Pulumi.dev.yaml"])
def test_rendering_into_a_folder_of_other_files_is_refused_before_anything_is_removed(tmp_path: Path, name: str):
    (tmp_path / name).write_text("mine")
    (tmp_path / "service.llm.gateway.yaml").touch()
    with pytest.raises(LocalError, match=f"holds other files .{name}"):
        render("dev", tmp_path)
    with pytest.raises(LocalError, match="is a file"):
        render("dev", tmp_path / name)
    assert (tmp_path / name).read_text() == "mine"
    assert (tmp_path / "service.llm.gateway.yaml").exists()


def test_a_folder_of_an_earlier_rendering_is_taken_again(tmp_path: Path):
    for metadata in ({"name": "llm"}, {"name": "v1beta2.custom.metrics.k8s.io"}, {"name": "gate", "namespace": "llm"}):
        (tmp_path / file_name({"kind": "APIService", "metadata": metadata})).touch()
    require_ours(tmp_path)
    require_ours(tmp_path / "new")


def test_rendered_files_are_named_by_kind_namespace_and_name_and_hold_no_secret():
    steps = [
        {"newState": {"type": "kubernetes:core/v1:Secret", "inputs": {
            "apiVersion": "v1", "kind": "Secret", "data": "[secret]", "metadata": {"name": "k", "namespace": "n"}}}},
        {"newState": {"type": "kubernetes:core/v1:Namespace", "inputs": {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}}},
        {"newState": {"type": "kubernetes:core/v1:NodePatch", "inputs": {}}},
        {"newState": {"type": "moonstack:serving:Router", "inputs": {}}},
    ]  # fmt: skip
    found = list(manifests_of(steps))
    assert [file_name(each) for each in found] == ["secret.n.k.yaml", "namespace._cluster.n.yaml"]
    assert "data" not in found[0]


def test_replicas_that_a_scaler_owns_are_not_rendered_and_those_of_others_are():
    def state(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec}
        return {"newState": {"type": f"kubernetes:apps/v1:{kind}", "inputs": body}}

    target = {"scaleTargetRef": {"kind": "Deployment", "name": "engine"}}
    steps = [
        state("Deployment", "engine", {"replicas": 3, "paused": False}),
        state("Deployment", "warm", {"replicas": 0}),
        state("HorizontalPodAutoscaler", "engine", target),
    ]
    engine, warm, _ = manifests_of(steps)
    assert (engine["spec"], warm["spec"]) == ({"paused": False}, {"replicas": 0})
