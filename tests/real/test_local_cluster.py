"""The local cluster is a real one: what pods are promised anywhere holds here, and the host stays as it was."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from local import runtime
from local.cluster import connect
from local.cluster.addons.kwok import SimulatedPool, simulate_nodes
from local.cluster.layout import HOST_INTERFACE, layout
from local.cluster.processes import Supervisor
from local.progress import Progress
from local.runtime import containerd, images
from tests.real.conftest import kubectl, local

pytestmark = pytest.mark.real

NAMESPACE = "local-cluster-test"
IMAGE = "engine-cpu"

_ASK = """\
import ssl, sys, urllib.error, urllib.request
context = ssl._create_unverified_context()
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=4, context=context).status)
except urllib.error.HTTPError as answer:
    print(answer.code)
except OSError:
    print("000")
"""


@pytest.fixture(scope="module")
def namespace(cluster: Path) -> Iterator[str]:
    """A namespace of its own, with an image that has Python."""
    images.ensure_layers(IMAGE, Progress())
    containerd.import_images(layout().socket, {IMAGE: runtime.image(IMAGE)}, Progress())
    kubectl("create", "namespace", NAMESPACE)
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE, "--grace-period=1")


@pytest.fixture(scope="module")
def server(namespace: str) -> str:
    """A web server behind a Service of the same name, seen from a NodePort too."""
    _run("server", "python3", "-u", "-m", "http.server", "8080", "--directory", "/tmp")
    ports = [{"port": 80, "targetPort": 8080, "nodePort": 30999}]
    _apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "spec": {"type": "NodePort", "selector": {"run": "server"}, "ports": ports},
        },
        "server",
    )
    _until(lambda: _phase("server") == "Running")
    _until(lambda: _code("server", "http://127.0.0.1:8080/") == "200")
    return "server"


@pytest.fixture(scope="module")
def client(namespace: str) -> str:
    """A pod to ask from."""
    _run("client", "sleep", "3600")
    _until(lambda: _phase("client") == "Running")
    return "client"


def test_the_status_is_usable_and_names_the_chips(cluster: Path):
    status = json.loads(local("status", "--json").stdout)
    assert status["usable"]
    node = next(node for node in status["nodes"] if node["name"] == "local-0")
    assert node["ready"]
    assert node["chips"]["huawei.com/Ascend910"] == 32


def test_a_second_up_leaves_every_process_alone(cluster: Path):
    supervisor = Supervisor(layout().state)
    before = {name: supervisor.running(name) for name in supervisor.names()}
    local("up")
    time.sleep(3)
    assert {name: supervisor.running(name) for name in supervisor.names()} == before


def test_a_component_that_died_is_reported_and_started_again(cluster: Path):
    supervisor = Supervisor(layout().state)
    pid = supervisor.running("kube-scheduler")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    _until(lambda: supervisor.running("kube-scheduler") is None)
    broken = local("status", check=False)
    assert broken.returncode == 1
    assert "stopped: kube-scheduler" in broken.stdout
    local("up")
    assert local("status").returncode == 0


def test_a_fresh_namespace_gets_the_clusters_authority(namespace: str):
    found = ["get", "configmap", "kube-root-ca.crt", "-n", namespace, "-o", "jsonpath={.data.ca\\.crt}"]
    _until(lambda: bool(kubectl(*found, check=False)))
    assert kubectl(*found) == (layout().pki / "ca.crt").read_text()


def test_a_pod_finds_the_api_server_by_name_and_trusts_it(client: str):
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    program = (
        "import ssl, urllib.request as u;"
        f"r = u.Request('https://kubernetes.default.svc/version', headers={{'Authorization': 'Bearer ' + open('{folder}/token').read()}});"
        f"print(u.urlopen(r, timeout=5, context=ssl.create_default_context(cafile='{folder}/ca.crt')).read().decode())"
    )
    assert json.loads(_in(client, "python3", "-c", program))["gitVersion"] == "v1.37.2"


def test_nobody_comes_in_without_a_certificate_or_a_token(client: str):
    assert _code(client, "https://kubernetes.default.svc/version") == "401"


def test_services_are_found_by_name_from_pods_and_by_port_from_the_host(server: str, client: str):
    name = f"http://server.{NAMESPACE}.svc.cluster.local/"
    _until(lambda: _code(client, name) == "200")
    _until(lambda: _from_the_host(f"http://{layout().node}:30999/") == 200)


def test_a_pod_reaches_itself_through_its_own_service(server: str):
    assert _code("server", f"http://server.{NAMESPACE}.svc.cluster.local/") == "200", (
        "not by its host name, which is itself"
    )


def test_logs_come_through_the_api_server(server: str, client: str):
    _code(client, "http://server/asked-for-the-log")
    _until(lambda: "asked-for-the-log" in kubectl("logs", "server", "-n", NAMESPACE))


def test_more_chips_than_there_are_leave_a_pod_pending_with_the_reason(namespace: str):
    _run("greedy", "sleep", "60", resources={"limits": {"huawei.com/Ascend910": "33"}})
    _until(lambda: "Insufficient huawei.com/Ascend910" in _scheduling("greedy"))
    assert _phase("greedy") == "Pending"
    _delete("greedy")


def test_a_sixth_engine_does_not_fit(namespace: str):
    names = [f"engine-{index}" for index in range(6)]
    for name in names:
        _run(name, "sleep", "600", resources={"requests": {"memory": "3Gi"}})
    _until(lambda: any("Insufficient memory" in _scheduling(name) for name in names))
    _delete(*names)


def test_a_container_over_its_memory_limit_is_killed(namespace: str):
    _run("fat", "python3", "-c", "bytearray(300 << 20)", resources={"limits": {"memory": "64Mi"}})
    reason = "jsonpath={.status.containerStatuses[0].state.terminated.reason}"
    _until(lambda: kubectl("get", "pod", "fat", "-n", NAMESPACE, "-o", reason) == "OOMKilled")
    _delete("fat")


def test_the_host_has_no_way_to_pods_and_no_rules_of_the_cluster(server: str):
    address = kubectl("get", "pod", "server", "-n", NAMESPACE, "-o", "jsonpath={.status.podIP}")
    route = subprocess.run(["ip", "route", "get", address], capture_output=True, text=True, check=False).stdout
    assert HOST_INTERFACE not in route
    assert "kube" not in subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout
    mounts = Path("/proc/self/mountinfo").read_text()
    assert str(layout().state) not in mounts
    assert "kubelet" not in mounts


def test_network_policies_bite_with_the_addon_and_go_with_it(server: str, client: str):
    local("addon", "network-policies")
    assert _code(client, "http://server/") == "200"
    spec = {"podSelector": {"matchLabels": {"run": "server"}}, "policyTypes": ["Ingress"]}
    _apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}, "closed")
    _until(lambda: _code(client, "http://server/") == "000", seconds=30)
    kubectl("delete", "networkpolicy", "closed", "-n", NAMESPACE)
    _until(lambda: _code(client, "http://server/") == "200", seconds=30)
    _apply({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}, "closed")
    _until(lambda: _code(client, "http://server/") == "000", seconds=30)
    local("addon", "network-policies", "--off")
    assert _code(client, "http://server/") == "200"
    kubectl("delete", "networkpolicy", "closed", "-n", NAMESPACE)


def test_simulated_nodes_take_pods_by_the_real_scheduler_and_go_with_the_addon(namespace: str):
    local("addon", "kwok")
    pool = SimulatedPool(
        "simulated", 2, labels={"gpu.pool": "simulated"}, chips={"huawei.com/Ascend910": 8}, architecture="arm64"
    )
    api = connect(layout())
    assert simulate_nodes(api, [pool]) == ["simulated-0", "simulated-1"]
    api.close()
    for index in range(3):
        _run(f"rehearsed-{index}", "sleep", "1", resources={"limits": {"huawei.com/Ascend910": "8"}}, pool="simulated")
    _until(lambda: sorted(_phase(f"rehearsed-{index}") for index in range(3)) == ["Pending", "Running", "Running"])
    local("addon", "kwok", "--off")
    assert "simulated" not in kubectl("get", "nodes", "-o", "name")
    _delete(*(f"rehearsed-{index}" for index in range(3)))


def _run(name: str, *command: str, resources: dict[str, object] | None = None, pool: str | None = None) -> None:
    container = {"name": "main", "image": runtime.image(IMAGE), "command": list(command), "resources": resources or {}}
    spec = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"gpu.pool": pool} if pool else {},
    }
    _apply({"apiVersion": "v1", "kind": "Pod", "spec": spec}, name)


def _apply(document: dict[str, object], name: str) -> None:
    whole = {**document, "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"run": name}}}
    program = ["kubectl", "--kubeconfig", str(layout().state / "kubeconfig"), "apply", "-f", "-"]
    subprocess.run(program, input=json.dumps(whole), text=True, capture_output=True, check=True)


def _delete(*names: str) -> None:
    kubectl("delete", "pod", *names, "-n", NAMESPACE, "--grace-period=1", "--ignore-not-found")


def _in(pod: str, *command: str) -> str:
    return kubectl("exec", pod, "-n", NAMESPACE, "--", *command)


def _code(pod: str, url: str) -> str:
    """The HTTP status; 000 when there is no connection."""
    return _in(pod, "python3", "-c", _ASK, url).strip()


def _from_the_host(url: str) -> int:
    """The HTTP status; 0 when there is no connection, as before kube-proxy has seen a new Service."""
    try:
        return httpx.get(url, timeout=5).status_code
    except httpx.TransportError:
        return 0


def _phase(pod: str) -> str:
    return kubectl("get", "pod", pod, "-n", NAMESPACE, "-o", "jsonpath={.status.phase}", check=False)


def _scheduling(pod: str) -> str:
    message = 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}'
    return kubectl("get", "pod", pod, "-n", NAMESPACE, "-o", message)


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.5)
