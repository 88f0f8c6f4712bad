"""Each diagnosis: silent on a sound stack, and found in the state that its fault leaves behind."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.samples import Sample

from rules import labels, names, timing
from settings.kv_store import KvStoreSettings
from smoke.channel.plan import Fault
from smoke.client import GatewayClient
from smoke.doctor.catalogue import CATALOGUE, runbooks
from smoke.doctor.diagnosis import findings
from smoke.doctor.facts import Door, Facts
from smoke.doctor.gather import knock
from smoke.engines import EXTERNAL_HITS, EXTERNAL_QUERIES
from smoke.errors import PermanentError, TemporaryError
from smoke.probe import LiveStack
from tests.unit.smoke.fakes import MODEL, FakeStack, dev_settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRANSFER = '{"kv_connector":"MooncakeStoreConnector","kv_load_failure_policy":"recompute"}'
DOOR = Door(models=frozenset([MODEL]), status=200)


def pod(name: str, role: str | None = None, **more: Any) -> dict[str, Any]:
    own = (
        {labels.MODEL: MODEL, labels.ROLE: role, labels.ROUTED: "true", "moonstack.dev/warm-pool": "false"}
        if role
        else {}
    )
    spec = {
        "nodeName": "local-0",
        "terminationGracePeriodSeconds": timing.grace_seconds(60),
        "containers": [
            {
                "name": "engine",
                "args": ["/models/x", "--kv-transfer-config", TRANSFER],
                "env": [{"name": "PYTHONHASHSEED", "value": "0"}],
            }
        ],
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": own | more.pop("labels", {}), "annotations": {labels.KV_IDENTITY: "one"}},
        "spec": spec | more.pop("spec", {}),
        "status": {"podIP": f"10.0.0.{len(name)}", "conditions": [{"type": "Ready", "status": "True"}], **more},
    }


def hpa(kind: str, status: str, reason: str) -> dict[str, Any]:
    state = {"type": kind, "status": status, "reason": reason, "message": f"{reason} it says"}
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "inference_queue_depth"}}}]
    spec = {"scaleTargetRef": {"name": f"{MODEL}-prefill-ascend"}, "maxReplicas": 4, "metrics": metrics}
    return {"kind": "HPA", "metadata": {"name": "h"}, "spec": spec, "status": {"conditions": [state]}}


def api_service(status: str) -> dict[str, Any]:
    return {
        "kind": "APIService",
        "metadata": {"name": "v1beta2.custom.metrics.k8s.io"},
        "spec": {"group": "custom.metrics.k8s.io", "service": {"name": names.CAPACITY}},
        "status": {"conditions": [{"type": "Available", "status": status, "message": "no endpoints"}]},
    }


PREFILL, DECODE = pod("prefill-a", "prefill"), pod("decode-a-long", "decode")
MASTER = pod("mooncake-master-0", labels={"app.kubernetes.io/name": names.KV_MASTER})
NODE = {
    "kind": "Node",
    "metadata": {"name": "local-0"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


def sound(**more: Any) -> Facts:
    values: dict[str, Any] = {
        "settings": dev_settings(),
        "now": NOW,
        "pods": (PREFILL, DECODE, MASTER),
        "nodes": (NODE,),
        "hpas": (hpa("ScalingActive", "True", "ValidMetricFound"),),
        "api_services": (api_service("True"),),
        "root_ca": {"data": {"ca.crt": "-----BEGIN CERTIFICATE-----"}},
        "counters": {"prefill-a": {EXTERNAL_QUERIES: 1e6, EXTERNAL_HITS: 1e5}},
        "workers": {"dev-wide-router-1": frozenset({"10.0.0.9", "10.0.0.13"})},
        "store": {"master_active_clients": 2},
        "door": DOOR,
    }
    return Facts(**(values | more))


def pending(message: str) -> dict[str, Any]:
    state = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod("new", "prefill", conditions=[state], phase="Pending")


def container(**more: Any) -> dict[str, Any]:
    return pod("bad", "prefill", conditions=[], phase="Pending", containerStatuses=[{"name": "engine", **more}])


def keyed(**key: Any) -> Any:
    settings = dev_settings()
    changed = settings.keys.keys[0].model_copy(update=key)
    return settings.model_copy(update={"keys": settings.keys.model_copy(update={"keys": (changed,)})})


def with_channel() -> Any:
    settings = dev_settings()
    return settings.model_copy(update={"channel": settings.channel.model_copy(update={"enabled": True})})


def envoy(name: str, value: float, **tags: str) -> Sample:
    return Sample(name, tags, value)


def answered(code: str, times: int = 1, well: int = 9) -> tuple[Sample, ...]:
    name = "envoy_cluster_upstream_rq"
    return (
        envoy(name, well, **CHANNEL, envoy_response_code="200"),
        envoy(name, times, **CHANNEL, envoy_response_code=code),
        envoy(name, 50, envoy_cluster_name="in-chat", envoy_response_code=code),
    )


CHANNEL = {"envoy_cluster_name": "channel"}
CRASH = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 5}
MOUNT = {"reason": "FailedMount", "involvedObject": {"name": "bad"}, "message": 'configmap "mooncake-store" not found'}

FOREIGN = {**api_service("False"), "spec": {"group": "metrics.k8s.io", "service": {"name": "m"}}}


def on_kthena() -> Any:
    settings = dev_settings()
    engines = settings.autoscaling.engines.model_copy(update={"enabled": True})
    return settings.model_copy(
        update={
            "models": (settings.models[0].model_copy(update={"backend": "kthena"}),),
            "autoscaling": settings.autoscaling.model_copy(update={"engines": engines}),
        }
    )


FAULTS: dict[str, Callable[[], Facts]] = {
    "kthena-not-served": lambda: sound(settings=on_kthena()),
    "kthena-not-scaled": lambda: sound(settings=on_kthena()),
    "gateway-unreachable": lambda: sound(door=Door(error=TemporaryError("refused", "look"))),
    "model-unavailable": lambda: sound(door=Door(status=503)),
    "key-refused": lambda: sound(door=Door(status=401)),
    "key-expired": lambda: sound(settings=keyed(expires=NOW - timedelta(days=1))),
    "key-expires-soon": lambda: sound(settings=keyed(expires=NOW + timedelta(days=3))),
    "answer-unparsable": lambda: sound(door=Door(status=200, parsed=False, error=PermanentError("no choices", "look"))),
    "model-names-differ": lambda: sound(door=Door(status=200, models=frozenset(["Dev-Wide"]))),
    "channel-unreachable": lambda: sound(
        settings=with_channel(),
        door=None,
        gateway=(
            envoy("envoy_cluster_membership_total", 1, **CHANNEL),
            envoy("envoy_cluster_upstream_cx_total", 4, **CHANNEL),
            envoy("envoy_cluster_upstream_cx_connect_fail", 4, **CHANNEL),
        ),
    ),
    "channel-key-refused": lambda: sound(gateway=answered("401")),
    "channel-model-unknown": lambda: sound(gateway=answered("404")),
    "channel-exhausted": lambda: sound(gateway=answered("429")),
    "channel-slow": lambda: sound(
        gateway=(
            envoy("envoy_cluster_upstream_rq_time_sum", 4000, **CHANNEL),
            envoy("envoy_http_downstream_rq_time_sum", 10_000, envoy_http_conn_manager_prefix="gateway"),
        )
    ),
    "gateway-config-rejected": lambda: sound(gateway=(envoy("envoy_cluster_manager_cds_update_rejected", 1),)),
    "gateway-retries-overflow": lambda: sound(gateway=(envoy("envoy_cluster_upstream_rq_retry_overflow", 3),)),
    "metrics-api-missing": lambda: sound(api_services=()),
    "metric-not-served": lambda: sound(hpas=(hpa("ScalingActive", "False", "FailedGetPodsMetric"),)),
    "two-scalers": lambda: sound(hpas=(hpa("ScalingActive", "False", "AmbiguousSelector"),)),
    "scaler-off": lambda: sound(hpas=(hpa("ScalingActive", "False", "ScalingDisabled"),)),
    "scaler-at-maximum": lambda: sound(hpas=(hpa("ScalingLimited", "True", "TooManyReplicas"),)),
    "ready-not-routed": lambda: sound(
        pods=(PREFILL, DECODE, MASTER, pod("prefill-late", "prefill", labels={labels.ROUTED: "false"})), workers={}
    ),
    "router-stale": lambda: sound(workers={"dev-wide-router-1": frozenset({"10.0.0.9"})}),
    "chips-insufficient": lambda: sound(pods=(pending("0/1 nodes: 1 Insufficient huawei.com/Ascend910."),)),
    "no-node-fits": lambda: sound(pods=(pending("0/1 nodes: 1 node(s) didn't match Pod's node affinity/selector."),)),
    "mount-fails": lambda: sound(pods=(container(state={}),), events=(MOUNT,)),
    "image-missing": lambda: sound(pods=(container(state={"waiting": {"reason": "ImagePullBackOff"}}),)),
    "configuration-missing": lambda: sound(
        pods=(container(state={"waiting": {"reason": "CreateContainerConfigError"}}),)
    ),
    "store-component-missing": lambda: sound(
        pods=(container(**CRASH, lastState={"terminated": {"exitCode": 1, "message": "No module named 'mooncake'"}}),)
    ),
    "crash-loop": lambda: sound(pods=(container(**CRASH, lastState={"terminated": {"exitCode": 139}}),)),
    "not-ready": lambda: sound(
        pods=(pod("slow", "prefill", conditions=[], phase="Running", startTime="2025-12-31T23:00:00Z"),)
    ),
    "out-of-memory": lambda: sound(pods=(container(lastState={"terminated": {"reason": "OOMKilled"}}),)),
    "rollout-stuck": lambda: sound(
        deployments=(
            {
                "kind": "Deployment",
                "metadata": {"name": "d"},
                "status": {"conditions": [{"type": "Progressing", "status": "False", "message": "deadline"}]},
            },
        )
    ),
    "node-not-ready": lambda: sound(
        nodes=({**NODE, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},)
    ),
    "store-master-down": lambda: sound(pods=(PREFILL, DECODE)),
    "store-engines-missing": lambda: sound(store={"master_active_clients": 1}),
    "store-silent": lambda: sound(counters={"prefill-a": {EXTERNAL_QUERIES: 1e6, EXTERNAL_HITS: 0}}),
    "store-identities-differ": lambda: sound(
        pods=(
            PREFILL,
            {**DECODE, "metadata": {**DECODE["metadata"], "annotations": {labels.KV_IDENTITY: "two"}}},
            MASTER,
        )
    ),
    "hash-seed-differs": lambda: sound(
        pods=(PREFILL, pod("decode-a-long", "decode", spec={"containers": [{"name": "engine", "env": []}]}), MASTER)
    ),
    "load-failure-fatal": lambda: sound(
        pods=(
            PREFILL,
            pod(
                "decode-a-long",
                "decode",
                spec={
                    "containers": [
                        {
                            "name": "engine",
                            "args": ["--kv-transfer-config", "{}"],
                            "env": [{"name": "PYTHONHASHSEED", "value": "0"}],
                        }
                    ]
                },
            ),
            MASTER,
        )
    ),
    "store-puts-fail": lambda: sound(counters={"prefill-a": {"vllm:mooncake_store_operation_failed_keys_total": 2}}),
    "grace-too-short": lambda: sound(
        pods=(
            PREFILL,
            pod("decode-a-long", "decode", spec={**DECODE["spec"], "terminationGracePeriodSeconds": 30}),
            MASTER,
        )
    ),
    "root-ca-empty": lambda: sound(root_ca={"data": {"ca.crt": ""}}),
    "aggregated-api-down": lambda: sound(api_services=(api_service("True"), FOREIGN)),
    "not-readable": lambda: sound(blind=("nodes",)),
}


def test_a_sound_stack_has_no_findings():
    assert findings(CATALOGUE, sound()) == []


def test_every_diagnosis_has_a_fault_here():
    assert set(FAULTS) == {one.id for one in CATALOGUE}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_the_fault_is_found_with_object_cause_and_fix(fault: str):
    found = {one.id: one for one in findings(CATALOGUE, FAULTS[fault]())}
    assert fault in found
    assert found[fault].object
    assert found[fault].cause
    assert found[fault].fix


def test_kedas_scalers_need_kedas_metrics_api_and_not_ours():
    scaler = hpa("ScalingActive", "True", "ValidMetricFound")
    scaler["spec"]["metrics"] = [{"type": "External", "external": {"metric": {"name": "s0-prometheus"}}}]
    kedas = {**api_service("True"), "spec": {"group": "external.metrics.k8s.io", "service": {"name": "keda"}}}
    assert findings(CATALOGUE, sound(hpas=(scaler,), api_services=(kedas,))) == []
    [one] = findings(CATALOGUE, sound(hpas=(scaler,), api_services=(api_service("True"),)))
    assert (one.id, one.object) == ("metrics-api-missing", "apiservice/external.metrics.k8s.io")


def test_pods_that_hold_the_store_are_clients_as_engines_are():
    held = pod("mooncake-store-0", labels={"app.kubernetes.io/name": names.KV_STORE})
    all_there = sound(pods=(PREFILL, DECODE, MASTER, held), store={"master_active_clients": 3})
    assert findings(CATALOGUE, all_there) == []
    [one] = findings(CATALOGUE, replace(all_there, store={"master_active_clients": 2}))
    assert one.id == "store-engines-missing" and "1 Ready store pods" in one.cause + one.object


def test_engines_that_share_nothing_are_missed_by_no_store():
    settings = dev_settings()
    models = (settings.models[0].model_copy(update={"connector": "none"}), *settings.models[1:])
    alone = sound(settings=settings.model_copy(update={"models": models}), store={"master_active_clients": 0})
    assert "store-engines-missing" not in {one.id for one in findings(CATALOGUE, alone)}


def test_a_429_now_and_then_is_no_finding():
    assert findings(CATALOGUE, sound(gateway=answered("429", times=5, well=95))) == []
    assert findings(CATALOGUE, sound(gateway=answered("401", times=0))) == []


def test_errors_come_first():
    facts = replace(sound(door=Door(status=401)), blind=("nodes",), counters={"p": {EXTERNAL_QUERIES: 0}})
    severities = [one.severity for one in findings(CATALOGUE, facts)]
    assert severities == sorted(severities, key=("error", "warning", "info").index)


def test_a_mount_that_succeeded_later_is_no_finding():
    assert findings(CATALOGUE, sound(events=({**MOUNT, "involvedObject": {"name": "prefill-a"}},))) == []


def test_engines_that_lend_the_store_nothing_are_no_clients_of_it():
    settings = dev_settings()
    held = pod("mooncake-store-0", labels={"app.kubernetes.io/name": names.KV_STORE})
    store = KvStoreSettings.model_validate({"storePods": {"segment": "1Gi"}})
    there = sound(
        settings=settings.model_copy(update={"kv_store": store}),
        pods=(PREFILL, DECODE, MASTER, held),
        store={"master_active_clients": 1},
    )
    assert findings(CATALOGUE, there) == []
    [one] = findings(CATALOGUE, replace(there, store={"master_active_clients": 0}))
    assert one.id == "store-engines-missing"


def test_the_runbooks_in_docs_are_the_catalogues():
    path = Path(__file__).parents[3] / "docs" / "runbooks.md"
    assert path.read_text() == runbooks() + "\n", "run: python -m smoke runbooks > docs/runbooks.md"


async def test_the_door_is_seen_open_locked_and_broken(live: LiveStack, stack: FakeStack):
    assert await knock(live.gateway, live.settings) == DOOR
    assert (await knock(live.gateway.with_key("wrong"), live.settings)).status == 401
    stack.plan = stack.plan.model_copy(update={"faults": (Fault(kind="garbage"),)})
    assert not (await knock(live.gateway, live.settings)).parsed


async def test_a_closed_door_is_a_temporary_error():
    async with httpx.AsyncClient(base_url="http://127.0.0.1:9") as http:
        with pytest.raises(TemporaryError):
            await knock(GatewayClient(http, "x"), dev_settings())
