"""The boundary bites: allowed and forbidden edges, tried from real pods under enforced NetworkPolicies."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from rules import flow, names, ports
from rules.network_policy import COMPONENT
from settings.boundary import network_policies
from settings.local_runtime import LocalRuntime
from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.engines import Engines
from smoke.probe import LiveStack
from smoke.probes import boundary
from smoke.report import ProbeResult
from smoke.runner import run_probes
from tests.real.conftest import ROOT, kubectl, local
from tests.real.test_doctor_faults import apply, in_namespace

NAMESPACE = "moonstack-boundary"
STRANGER = "stranger"
PARTS = (*flow.PARTS, STRANGER)
LISTENING = sorted(
    {
        ports.GATEWAY_HTTP,
        ports.GATEWAY_METRICS,
        ports.ROUTER,
        ports.ROUTER_METRICS,
        ports.KV_MASTER_RPC,
        ports.KV_MASTER_METRICS,
        23456,
    }
)
"""Every pod listens on all of them, so that only the policies decide; 23456 stands for the random ports of Mooncake and NIXL."""

SERVER = """
import asyncio, sys
async def main():
    async def take(reader, writer):
        writer.close()
    for port in sys.argv[1:]:
        await asyncio.start_server(take, "0.0.0.0", int(port))
    await asyncio.Event().wait()
asyncio.run(main())
"""
PROBE = """
import asyncio, json, sys
async def reached(address, port):
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address, port), 3)
        writer.close()
        return True
    except (OSError, asyncio.TimeoutError):
        return False
async def main():
    targets = json.loads(sys.argv[1])
    print(json.dumps(await asyncio.gather(*(reached(address, port) for address, port in targets))))
asyncio.run(main())
"""


def pod(part: str, image: str) -> dict[str, Any]:
    container = {
        "name": "probe",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", SERVER, *map(str, LISTENING)],
        "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}},
    }
    metadata = {"name": part, "namespace": NAMESPACE, "labels": {COMPONENT: part}}
    spec = {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def addresses(cluster: Path, tmp_path_factory) -> Iterator[dict[str, str]]:
    """Pod addresses by part, with dev's policies around them and a firewall that enforces them."""
    local("addon", "network-policies")
    settings = Settings.from_stack_file(ROOT / "Pulumi.dev.yaml")
    image = LocalRuntime.load().images["capacity"]
    objects: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
    objects += [pod(part, image) for part in PARTS]
    objects += [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        for name, spec in network_policies(settings).items()
    ]
    file = tmp_path_factory.mktemp("boundary") / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    try:
        kubectl("apply", "--filename", str(file))
        kubectl("wait", "--namespace", NAMESPACE, "--for=condition=Ready", "pod", "--all", "--timeout=120s")
        time.sleep(5)
        found = json.loads(kubectl("get", "pods", "--namespace", NAMESPACE, "--output", "json"))["items"]
        yield {one["metadata"]["name"]: one["status"]["podIP"] for one in found}
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false", check=False)
        local("addon", "network-policies", "--off")


def reached(source: str, targets: list[tuple[str, int]]) -> list[bool]:
    said = kubectl("exec", "--namespace", NAMESPACE, source, "--", "python3", "-c", PROBE, json.dumps(targets))
    return json.loads(said)


def expected(source: str, target: str, port: int) -> bool:
    """By the graph itself: the shape of dev has no channel, no Kthena and no fetched weights."""
    edges = [f for f in flow.flows(flow.Shape()) if (f.source, f.target) == (source, target)]
    return any(not f.ports or port in f.ports for f in edges)


@pytest.mark.parametrize("source", PARTS)
def test_each_part_reaches_what_the_graph_allows_and_nothing_else(addresses, source):
    targets = [(target, port) for target in PARTS if target != source for port in LISTENING]
    seen = reached(source, [(addresses[target], port) for target, port in targets])
    wrong = {
        f"{source} to {target}:{port}": was
        for (target, port), was in zip(targets, seen, strict=True)
        if was != expected(source, target, port)
    }
    assert wrong == {}


@pytest.fixture
def door(addresses: dict[str, str]) -> None:
    """The gateway's Service, by which clients find it."""
    port = {"port": ports.GATEWAY_HTTP, "targetPort": ports.GATEWAY_HTTP}
    service = {"selector": {COMPONENT: flow.GATEWAY}, "ports": [port]}
    apply([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": names.GATEWAY}, "spec": service}], NAMESPACE)


def boundary_probe() -> ProbeResult:
    """Smoke's own probe, from a pod of its own in this namespace."""
    settings = in_namespace(NAMESPACE)
    gateway = settings.gateway.model_copy(update={"http_port": ports.GATEWAY_HTTP})
    network = settings.network.model_copy(update={"enforced": True})
    settings = settings.model_copy(update={"gateway": gateway, "network": network})

    async def run() -> tuple[ProbeResult, ...]:
        engines = Engines(await Cluster.connect(settings.cluster))
        live = LiveStack(name="dev", settings=settings, gateway=cast(Any, None), engines=engines)
        return (await run_probes(boundary.probes(settings), live, 120))[0]

    (result,) = asyncio.run(run())
    return result


def probed(verdict: str) -> ProbeResult:
    """The probe's result, once it is this one: policies are enforced some seconds after they change."""
    deadline = time.monotonic() + 60
    while (result := boundary_probe()).verdict != verdict and time.monotonic() < deadline:
        time.sleep(1)
    return result


@pytest.mark.parametrize("part", ["engine", "router", "kv-store"])
def test_smokes_probe_is_green_behind_the_policies_and_red_for_a_hole_to_one_part(door: None, part: str):
    assert probed("pass").verdict == "pass"
    hole = {"podSelector": {"matchLabels": {COMPONENT: part}}, "ingress": [{}], "policyTypes": ["Ingress"]}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "hole"}, "spec": hole}
    apply([policy], NAMESPACE)
    try:
        result = probed("fail")
    finally:
        kubectl("delete", "networkpolicy", "hole", "--namespace", NAMESPACE)
    assert (result.verdict, result.figure) == ("fail", 1), result
    assert f"reached {part}" in (result.cause or "")


def test_the_probe_sees_open_ports_where_no_policy_is(addresses):
    """Else every forbidden edge would pass for the wrong reason."""
    kubectl("label", "pod", "--namespace", NAMESPACE, flow.ROUTER, f"{COMPONENT}-", check=True)
    kubectl("delete", "networkpolicy", "--namespace", NAMESPACE, "--all")
    deadline = time.monotonic() + 60
    while not all(reached(STRANGER, [(addresses[flow.ENGINE], port) for port in LISTENING])):
        assert time.monotonic() < deadline, "ports stay closed without policies"
        time.sleep(2)
