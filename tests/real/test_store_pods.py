"""Mooncake's own master and store process, as their pods start them, and two clients: what one stored outlives it, and the master too."""

import json
from pathlib import Path
from typing import Any, cast

from bench.simulated.sockets import free_port
from components.context import Context
from components.kv_store import KvStoreArgs, deployment, engine_store_config, store_pods
from components.pods.store import store_deployment
from local.progress import Progress
from local.runtime import base, python_packages
from settings.kv_store import KvStoreSettings

NAMESPACE = "holding"
SCENARIO = """
import json, os, subprocess, sys, time, urllib.request

place = json.load(open("/opt/scenario/place.json"))
output = open("/opt/scenario/output.txt", "w")
started, config = [], place["config"]


def start(*command):
    started.append(subprocess.Popen(command, stdout=output, stderr=output))
    return started[-1]


def ask(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


def until(wanted, what):
    began = time.monotonic()
    while not wanted():
        assert time.monotonic() - began < 60, f"waited in vain for {what}"
        time.sleep(0.2)


def client(*words):
    return start(sys.executable, "/opt/scenario/client.py", *words)


def holds():
    return ask(place["store_health"], "/health")[0] == 200


try:
    store = start(*place["store"])
    result = {"health without a master": ask(place["store_health"], "/health")[0]}
    master = start(*place["master"])
    until(holds, "the store")
    putter = client("put")
    until(lambda: os.path.exists("/opt/scenario/put"), "the put")
    result["segments while both live"] = len(ask(place["master_health"], "/get_all_segments")[1].split())
    putter.kill()
    putter.wait()
    until(lambda: "master_active_clients 1" in ask(place["master_health"], "/metrics")[1], "the putter's end")
    result["got after the putter's end"] = client("get").wait(60)
    master.kill()
    until(lambda: ask(place["store_health"], "/health")[0] == 503, "the master's end")
    result["store lives on"] = store.poll() is None
    master = start(*place["master"])
    until(holds, "the return to the new master")
    result["segments at the new master"] = len(ask(place["master_health"], "/get_all_segments")[1].split())
    result["put and got at the new master"] = client("both").wait(60)
    json.dump(result, open("/opt/scenario/result.json", "w"))
finally:
    for process in started:
        process.kill()
output.flush()
os._exit(0 if os.path.exists("/opt/scenario/result.json") else 1)
"""
CLIENT = """
import json, os, sys, time
from mooncake.store import MooncakeDistributedStore

config, what = json.load(open("/opt/scenario/place.json"))["config"], sys.argv[1]
store, value = MooncakeDistributedStore(), bytes(range(256)) * 20_000
done = store.setup(
    "127.0.0.1", config["metadata_server"], config["global_segment_size"], config["local_buffer_size"],
    config["protocol"], config["device_name"], config["master_server_address"],
)
assert done == 0, f"no client: {done}"
if what in ("put", "both"):
    assert store.put(what, value) == 0
if what == "put":
    open("/opt/scenario/put", "w").close()
    time.sleep(600)
os._exit(0 if store.get("put" if what == "get" else what) == value else 3)
"""


def test_what_one_engine_stored_another_reads_after_the_first_and_the_master_were_gone(tmp_path: Path):
    rpc, metrics, store_rpc, store_metrics = free_port(), free_port(), free_port(), free_port()
    settings = KvStoreSettings.model_validate(
        {"storePods": {"segment": "128Mi"}, "buffer": "64Mi", "clientTtlSeconds": 3}
    )
    args = KvStoreArgs(settings=settings, protocol="tcp")
    pods, context = store_pods(args, NAMESPACE), _context()
    assert pods is not None
    here = {args.master(NAMESPACE): f"127.0.0.1:{rpc}", "$(POD_IP)": "127.0.0.1"}
    config = engine_store_config(args, NAMESPACE)
    config["master_server_address"] = here[config["master_server_address"]]
    place = {
        "master": _command(deployment(args, context), here, rpc_port=rpc, metrics_port=metrics),
        "store": _command(store_deployment(pods, context), here, port=store_rpc, http_port=store_metrics),
        "master_health": metrics,
        "store_health": store_metrics,
        "config": config,
    }
    for name, text in {"place.json": json.dumps(place), "scenario.py": SCENARIO, "client.py": CLIENT}.items():
        (tmp_path / name).write_text(text)
    base.run(
        base.ensure(Progress()),
        ["python3", "/opt/scenario/scenario.py"],
        binds={"/opt/scenario": tmp_path, "/opt/mooncake": python_packages.ensure("mooncake", Progress())},
        environment={"PYTHONPATH": "/opt/mooncake"},
    )
    assert json.loads((tmp_path / "result.json").read_text()) == {
        "health without a master": 0,
        "segments while both live": 1,
        "got after the putter's end": 0,
        "store lives on": True,
        "segments at the new master": 1,
        "put and got at the new master": 0,
    }


def _context() -> Context:
    return Context(
        stack="x", environment="dev", namespace=NAMESPACE, provider=cast(Any, None), images={"mooncake": "x"}
    )


def _command(manifest: Any, here: dict[str, str], **ports: int) -> list[str]:
    """The pod's own command, at this machine's address and free ports."""
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    words = [f"/opt/mooncake/mooncake/{container['command'][0]}"]
    for each in container["args"]:
        name, _, value = each.removeprefix("--").partition("=")
        for old, new in here.items():
            value = value.replace(old, new)
        words.append(f"--{name}={ports.get(name, value)}" if value else each)
    return words
