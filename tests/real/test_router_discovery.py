"""The real router with prefill and decode apart: whom it asks when pods lose their label, go, or leave their address to another.

Played: the API server, and engines that answer on loopback addresses. No cluster is needed.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bench.simulated.cluster import FakeCluster
from bench.simulated.engines import all_served, free_port
from components.router import router_arguments
from local.progress import Progress
from local.runtime import python_packages
from rules import labels, names
from settings.settings import Settings
from smoke.doctor.facts import Facts
from smoke.doctor.scaling import router_does_not_know
from smoke.routers import addresses
from tests.real.conftest import ROOT

ADDRESSES = ("127.0.1.21", "127.0.1.22", "127.0.1.31")
ROUTER = "from vllm_router.launch_router import main; main()"
PATIENCE_SECONDS = 20
PODS = "/api/v1/namespaces/n/pods"


@dataclass
class Engine:
    """What the pod at one address was asked for: prefill or decode."""

    asked: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request: Request) -> Response:
        if request.url.path != "/v1/chat/completions":
            return JSONResponse({"object": "list", "data": [{"id": "m", "object": "model"}], "status": "ok"})
        transfer = (await request.json()).get("kv_transfer_params") or {}
        self.asked.append(names.PREFILL if transfer.get("do_remote_decode") else names.DECODE)
        message = {"role": "assistant", "content": "x"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        remote = {"do_remote_prefill": True, "remote_engine_id": "e", "remote_block_ids": [1]}
        return JSONResponse({"id": "c", "object": "chat.completion", "choices": [choice], "kv_transfer_params": remote})


@dataclass
class Played:
    """The router, the pods that it is told of, and the engines behind their addresses."""

    cluster: FakeCluster
    engines: dict[str, Engine]
    http: httpx.AsyncClient
    model: str

    def pod(self, name: str, address: str, role: str, *, routed: bool = True, model: str | None = None) -> str:
        """Add a Ready pod, or change its labels."""
        own = labels.routed_selector(names.slug(model or self.model), role) | {labels.ROUTED: str(routed).lower()}
        path = self.cluster.pod(name, ip=address, namespace="n", labels=own)
        body = self.cluster.objects[path]
        body["status"] |= {"phase": "Running", "podIPs": [{"ip": address}]}
        self.cluster.put(path, body)
        return path

    def end(self, name: str, *, gone: bool = True) -> None:
        """A pod ends as pods do: its end is announced, then it is gone."""
        body = self.cluster.objects[f"{PODS}/{name}"]
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.cluster.put(f"{PODS}/{name}", body)
        if gone:
            self.cluster.delete(f"{PODS}/{name}")

    async def counts(self, requests: int = 12) -> dict[str, tuple[int, int]]:
        """Address → how often it was asked to prefill and to decode; every request must be answered."""
        for engine in self.engines.values():
            engine.asked.clear()
        body = {"model": self.model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
        for _ in range(requests):
            answer = await self.http.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
        return {
            address: (engine.asked.count(names.PREFILL), engine.asked.count(names.DECODE))
            for address, engine in self.engines.items()
        }

    async def becomes(self, condition: Callable[[dict[str, tuple[int, int]]], bool]) -> None:
        """Wait until the router asks the right ones, and see that it stays so."""
        seen: Any = None
        for _ in range(PATIENCE_SECONDS * 2):
            try:
                seen = await self.counts(4)
                if condition(seen):
                    break
            except (AssertionError, httpx.HTTPError) as error:
                seen = error
            await asyncio.sleep(0.5)
        else:
            raise AssertionError(f"not within {PATIENCE_SECONDS} s: {seen}")
        assert condition(await self.counts())


def settings() -> Settings:
    return Settings.from_stack_file(ROOT / "Pulumi.dev.yaml")


def arguments(router: int, engines: int, metrics: int) -> list[str]:
    """The declared ones, on ports of loopback."""
    own = {"--host": "127.0.0.1", "--port": str(router), "--service-discovery-port": str(engines)}
    own |= {"--prometheus-host": "127.0.0.1", "--prometheus-port": str(metrics), "--policy": "round_robin"}
    words = router_arguments(settings().models[0], "n")
    for flag, value in own.items():
        words[words.index(flag) + 1] = value
    return words


@pytest.fixture
async def played(tmp_path: Path) -> AsyncIterator[Played]:
    cluster, engines = FakeCluster(), {address: Engine() for address in ADDRESSES}
    api, router, port, metrics = free_port(), free_port(), free_port("127.0.1.21"), free_port()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{api}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    packages = python_packages.ensure("router", Progress())
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(packages), "HOME": str(tmp_path)}
    environment["KUBECONFIG"] = str(tmp_path / "kubeconfig")
    apps = [(cluster.app(), "127.0.0.1", api), *((one.app(), at, port) for at, one in engines.items())]
    async with all_served(apps), httpx.AsyncClient(base_url=f"http://127.0.0.1:{router}", timeout=10) as http:
        this = Played(cluster, engines, http, settings().models[0].name)
        this.pod("prefill-a", ADDRESSES[0], names.PREFILL)
        this.pod("prefill-b", ADDRESSES[1], names.PREFILL)
        this.pod("decode-a", ADDRESSES[2], names.DECODE)
        with (tmp_path / "log").open("w") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", ROUTER, *arguments(router, port, metrics), env=environment, stdout=log, stderr=log
            )
            try:
                await this.becomes(lambda seen: min(seen[ADDRESSES[0]][0], seen[ADDRESSES[1]][0]) > 0)
                yield this
            finally:
                process.kill()
                await process.wait()


async def test_a_lost_label_stops_requests_and_a_given_one_brings_them_back(played: Played):
    played.pod("prefill-a", ADDRESSES[0], names.PREFILL, routed=False)
    await played.becomes(lambda seen: seen[ADDRESSES[0]] == (0, 0) and seen[ADDRESSES[1]][0] > 0)
    played.pod("prefill-a", ADDRESSES[0], names.PREFILL)
    await played.becomes(lambda seen: seen[ADDRESSES[0]][0] > 0)


async def test_an_address_that_passes_to_the_other_role_is_asked_for_that_role_alone(played: Played):
    played.end("prefill-b")
    played.pod("decode-b", ADDRESSES[1], names.DECODE)
    await played.becomes(lambda seen: seen[ADDRESSES[1]][0] == 0 and seen[ADDRESSES[1]][1] > 0)


async def test_an_address_that_passes_to_another_model_is_asked_for_nothing(played: Played):
    played.end("prefill-b")
    played.pod("other", ADDRESSES[1], names.PREFILL, model="another-model")
    await played.becomes(lambda seen: seen[ADDRESSES[1]] == (0, 0))


async def test_a_new_pod_at_an_address_is_kept_when_the_old_one_is_gone_only_afterwards(played: Played):
    played.end("prefill-b", gone=False)
    await played.becomes(lambda seen: seen[ADDRESSES[1]] == (0, 0))
    played.pod("decode-b", ADDRESSES[1], names.DECODE)
    played.cluster.delete(f"{PODS}/prefill-b")
    await played.becomes(lambda seen: seen[ADDRESSES[1]][0] == 0 and seen[ADDRESSES[1]][1] > 0)


async def test_a_pod_that_vanishes_without_ending_stays_known_and_the_doctor_says_so(played: Played):
    """Deleted by force, or while the router's watch was down: the router hears of no end. Its health check leaves it out."""
    played.cluster.delete(f"{PODS}/prefill-b")
    await asyncio.sleep(2)
    known = addresses((await played.http.get("/workers")).text)
    pods = tuple({"kind": "Pod", **body} for path, body in played.cluster.objects.items() if path.startswith(PODS))
    workers = {f"{names.router(played.model)}-1": known}
    [named] = router_does_not_know(Facts(settings=settings(), now=datetime.now(UTC), pods=pods, workers=workers))
    assert ADDRESSES[1] in named.seen
