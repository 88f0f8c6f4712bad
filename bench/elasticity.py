"""The capacity controller's cost and speed with many engines, and the forecasts' worth on three loads."""

import asyncio
import json
import math
import random
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.table import Table

from bench.engines import engines
from bench.loop import loop
from bench.output import JsonFile
from bench.simulated.cluster import FakeCluster
from bench.simulated.engines import ManyEngines, engine_page, free_port, served
from capacity.act import memory
from capacity.api.front_proxy import CONFIG
from capacity.config import ControllerConfig, Target
from capacity.simulate.score import score
from capacity.simulate.trace import Trace
from components.scaling.certificates import new_authority, new_certificate
from smoke.console import write

app = typer.Typer(
    help="Elasticity: the controller under load, forecasts, and the loop on the local cluster.", no_args_is_help=True
)
app.command()(loop)
app.command()(engines)

_CHILD = """
import asyncio, sys
from pathlib import Path
from capacity.config import ControllerConfig
from capacity.kube import Access
from capacity.service import Listen, serve
config, kube, certificate, key, port, metrics = sys.argv[1:]
listen = Listen(certificate=Path(certificate), key=Path(key), host="127.0.0.1", port=int(port), metrics_port=int(metrics))
asyncio.run(serve(ControllerConfig.load(Path(config)), Access(kube, tls=False), listen))
"""


@app.command()
def controller(
    pods: Annotated[list[int] | None, typer.Option(help="Numbers of engine pods.")] = None,
    seconds: Annotated[int, typer.Option(min=5, max=120)] = 20,
    json_file: JsonFile = None,
) -> None:
    """Cores and memory of one replica that scrapes so many engines once a second, and the age of what it serves."""
    figures = [asyncio.run(_controller(number, seconds)) for number in pods or [100, 500]]
    table = Table("pods", "cores", "MB", "scrapes/s", "change visible, p95 ms")
    for row in figures:
        table.add_row(
            *(f"{row[key]:g}" for key in ("pods", "cores", "megabytes", "scrapes_per_second", "visible_p95_ms"))
        )
    Console().print(table)
    if json_file:
        write(json_file, json.dumps({"schema": 1, "controller": figures}))


@app.command()
def forecast(json_file: JsonFile = None) -> None:
    """The forecasting methods on three loads of eight days: a daily curve, recurring ramps, random bursts."""
    figures = {name: [asdict(s) for s in score(trace, 5, 20)] for name, trace in traces().items()}
    table = Table("load", "method", "mean error", "minutes under", "load lost", "spare")
    for name, rows in figures.items():
        for row in rows:
            shares = (f"{row[key]:.2%}" for key in ("under", "lost", "spare"))
            table.add_row(name, row["method"], f"{row['mean_error']:.2f}", *shares)
    Console().print(table)
    if json_file:
        write(json_file, json.dumps({"schema": 1, "forecast": figures}))


def traces(days: int = 8, seed: int = 7) -> dict[str, Trace]:
    """Requests a second by the minute."""
    rng = random.Random(seed)
    minutes = range(days * 1440)
    noise = [rng.gauss(0, 1.5) for _ in minutes]
    daily = [30 - 20 * math.cos(2 * math.pi * m / 1440) for m in minutes]
    ramps = [20 + sum(60 * math.exp(-(((m % 1440 - peak) / 20) ** 2)) for peak in (540, 840, 1200)) for m in minutes]
    bursts = list(daily)
    for start in rng.sample(minutes, 60):
        for minute in range(start, min(start + rng.randint(3, 15), len(bursts))):
            bursts[minute] += 40
    times = tuple(60.0 * m for m in minutes)
    loads = {"daily": daily, "ramps": ramps, "bursts": bursts}
    return {
        name: Trace(times, tuple(max(0.0, rate + noise[m]) for m, rate in enumerate(rates)))
        for name, rates in loads.items()
    }


async def _controller(pods: int, seconds: int) -> dict[str, Any]:
    port, kube, api, metrics = free_port("0.0.0.0"), free_port(), free_port(), free_port()
    _show(0)
    cluster = _cluster(pods)
    many = await asyncio.get_running_loop().create_server(ManyEngines, "0.0.0.0", port)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(many)
        await stack.enter_async_context(served(cluster.app(), "127.0.0.1", kube))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        child = await _start(folder, port, kube, api, metrics)
        try:
            async with httpx.AsyncClient(base_url=f"https://localhost:{api}", verify=False, timeout=30) as http:
                await _all_visible(http, pods)
                await asyncio.sleep(5)  # the start is not what is measured
                before, scraped, started = _cpu_seconds(child.pid), await _scrapes(metrics), time.monotonic()
                await asyncio.sleep(seconds)
                took = time.monotonic() - started
                cores = (_cpu_seconds(child.pid) - before) / took
                rate = (await _scrapes(metrics) - scraped) / took
                delays = [await _visible(http, f"p{random.randrange(pods)}", value) for value in range(1, 21)]
            return {
                "pods": pods,
                "cores": round(cores, 3),
                "megabytes": round(_memory_bytes(child.pid) / 1e6, 1),
                "scrapes_per_second": round(rate, 1),
                "visible_p95_ms": round(1000 * statistics.quantiles(delays, n=20)[-1]),
            }
        finally:
            child.terminate()
            await child.wait()


def _cluster(pods: int) -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(CONFIG, {"metadata": {"name": "extension-apiserver-authentication"}, "data": {}})
    cluster.put(memory.path("n"), {"metadata": {"name": "state"}})
    for number in range(pods):
        own = {"app": "serve", "app.kubernetes.io/component": "engine"}
        cluster.pod(f"p{number}", ip=f"127.1.{number // 200}.{number % 200 + 1}", labels=own)
    return cluster


async def _start(folder: Path, port: int, kube: int, api: int, metrics: int) -> asyncio.subprocess.Process:
    target = Target(
        name="m",
        model="m",
        role="decode",
        selector={"app": "serve"},
        low=1,
        high=1000,
        scaled=False,
        requests_per_pod=12,
    )
    config = folder / "config.json"
    config.write_text(ControllerConfig(namespace="n", targets=(target,), engine_port=port).model_dump_json())
    pair = new_certificate(new_authority("bench"), ["localhost"])
    (folder / "tls.crt").write_text(pair.certificate)
    (folder / "tls.key").write_text(pair.key)
    arguments = [str(config), f"http://127.0.0.1:{kube}", str(folder / "tls.crt"), str(folder / "tls.key"), str(api)]
    return await asyncio.create_subprocess_exec(sys.executable, "-c", _CHILD, *arguments, str(metrics))


async def _values(http: httpx.AsyncClient, pod: str = "*") -> list[float]:
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/n/pods/{pod}/inference_queue_depth"
    answer = await http.get(path, params={"labelSelector": "app=serve"})
    return [int(item["value"][:-1]) / 1000 for item in answer.json()["items"]] if answer.status_code == 200 else []


async def _all_visible(http: httpx.AsyncClient, pods: int) -> None:
    for _ in range(900):
        try:
            if len(await _values(http)) == pods:
                return
        except httpx.HTTPError:
            pass
        await asyncio.sleep(0.1)
    raise TimeoutError(f"not all of {pods} pods became visible")


async def _visible(http: httpx.AsyncClient, pod: str, value: float) -> float:
    """Seconds from a change on all engines until the API shows it on that one."""
    await asyncio.sleep(random.uniform(0, 1))
    _show(value)
    started = time.monotonic()
    while value not in await _values(http, pod):
        await asyncio.sleep(0.02)
    return time.monotonic() - started


def _show(waiting: float) -> None:
    ManyEngines.show(engine_page(waiting, 8, 0.5, histograms=20))


async def _scrapes(metrics_port: int) -> float:
    async with httpx.AsyncClient() as http:
        page = (await http.get(f"http://127.0.0.1:{metrics_port}/metrics")).text
    ok = [line for line in page.splitlines() if line.startswith('moonstack_capacity_scrapes_total{result="ok"}')]
    return float(ok[0].rpartition(" ")[2]) if ok else 0.0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _memory_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024
