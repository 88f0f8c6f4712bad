"""Mooncake's own masters, an etcd and a client of the store: the leader is killed, and the client goes on by itself."""

import json
from pathlib import Path
from typing import Any, cast

from bench.simulated.sockets import free_port
from components.context import Context
from components.kv_store import KvStoreArgs, deployment, engine_store_config, store_environment
from local import tools
from local.progress import Progress
from local.runtime import base, python_packages
from settings.kv_store import KvStoreSettings

NAMESPACE = "election"
SCENARIO = """
import json, os, subprocess, sys, time, urllib.request

place = json.load(open("/opt/scenario/place.json"))
output = open("/opt/scenario/output.txt", "w")
started = []


def start(*command):
    started.append(subprocess.Popen(command, stdout=output, stderr=output))
    return started[-1]


def role(port):
    try:
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2))
    except OSError:
        return {}


def until(wanted, seconds=60):
    began = time.monotonic()
    while not wanted():
        assert time.monotonic() - began < seconds, "waited in vain"
        time.sleep(0.2)
    return time.monotonic() - began


try:
    start(*place["etcd"])
    masters = [start(*command) for command in place["masters"]]
    roles = lambda: [role(port).get("role") for port in place["metrics"]]
    until(lambda: sorted(map(str, roles())) == ["leader", "standby"])
    leader = roles().index("leader")

    from mooncake.store import MooncakeDistributedStore

    store, config = MooncakeDistributedStore(), place["config"]
    done = store.setup(
        "127.0.0.1", config["metadata_server"], config["global_segment_size"], config["local_buffer_size"],
        config["protocol"], config["device_name"], config["master_server_address"],
    )
    assert done == 0, f"no client: {done}"
    assert store.put("before", b"x" * 1000) == 0 and store.get("before") == b"x" * 1000

    masters[leader].kill()
    attempts = iter(range(10_000))

    def stored():
        key = f"after-{next(attempts)}"
        return store.put(key, b"y" * 1000) == 0 and store.get(key) == b"y" * 1000

    back = until(stored)
    survivor = role(place["metrics"][1 - leader])
    json.dump({"seconds": back, "survivor": survivor["role"]}, open("/opt/scenario/result.json", "w"))
finally:
    for process in started:
        process.kill()
output.flush()
os._exit(0 if sys.exc_info()[0] is None and os.path.exists("/opt/scenario/result.json") else 1)
"""


def test_a_client_of_the_store_goes_on_after_the_leading_master_was_killed(tmp_path: Path):
    etcd, peers, metrics, rpc = free_port(), free_port(), (free_port(), free_port()), (free_port(), free_port())
    settings = KvStoreSettings.model_validate(
        {"ha": {"etcd": [f"127.0.0.1:{etcd}", f"localhost:{etcd}"]}, "segment": "64Mi", "buffer": "64Mi"}
    )
    args = KvStoreArgs(settings=settings, protocol="tcp")
    urls = {"client": f"http://127.0.0.1:{etcd}", "peer": f"http://127.0.0.1:{peers}"}
    place = {
        "etcd": [
            "/opt/etcd/etcd", "--data-dir=/tmp/etcd",
            *(f"--listen-{kind}-urls={url}" for kind, url in urls.items()),
            f"--advertise-client-urls={urls['client']}", f"--initial-advertise-peer-urls={urls['peer']}",
            f"--initial-cluster=default={urls['peer']}",
        ],
        "masters": [_master(args, *ports) for ports in zip(rpc, metrics, strict=True)],
        "metrics": metrics,
        "config": engine_store_config(args, NAMESPACE),
    }  # fmt: skip
    (tmp_path / "place.json").write_text(json.dumps(place))
    (tmp_path / "scenario.py").write_text(SCENARIO)
    base.run(
        base.ensure(Progress()),
        ["python3", "/opt/scenario/scenario.py"],
        binds={
            "/opt/scenario": tmp_path,
            "/opt/mooncake": python_packages.ensure("mooncake", Progress()),
            "/opt/etcd": tools.path("etcd").resolve().parent,
        },
        environment={"PYTHONPATH": "/opt/mooncake", **store_environment(args, NAMESPACE)},
    )
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["survivor"] == "leader", found


def _master(args: KvStoreArgs, rpc: int, metrics: int) -> list[str]:
    """The pod's own command with the ports of this machine."""
    context = Context(
        stack="x", environment="dev", namespace=NAMESPACE, provider=cast(Any, None), images={"mooncake": "x"}
    )
    container = deployment(args, context)["spec"]["template"]["spec"]["containers"][0]
    kept = [each for each in container["args"] if not each.startswith(("--rpc_port", "--metrics_port"))]
    given = [each.replace("$(POD_IP)", "127.0.0.1") for each in kept]
    program = "/opt/mooncake/mooncake/mooncake_master"
    return [program, *given, f"--rpc_port={rpc}", f"--metrics_port={metrics}"]
