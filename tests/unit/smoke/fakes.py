"""A stack that is small and honest: the channel for tests as gateway, and engines whose counters say what was done."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response

from rules import labels, names
from settings.settings import Settings
from smoke.channel.app import Channel, whole_answer
from smoke.channel.plan import ChannelPlan
from smoke.channel.tokens import PrefixCache, prompt_of
from smoke.cluster import Reply

MODEL = "dev-wide"
ROOT = Path(__file__).parents[3]


def dev_settings(**smoke: Any) -> Settings:
    """The dev stack's settings, with changes to its group smoke."""
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    values = {key.removeprefix("moonstack:"): value for key, value in config.items()}
    values["smoke"] = values["smoke"] | {"prefixTokens": 400} | smoke
    return Settings.from_mapping(values)


def pod(name: str, own: dict[str, str], ready: bool = True) -> dict[str, Any]:
    """A pod as the API gives it, with labels."""
    return {
        "metadata": {"name": name, "labels": own, "annotations": {labels.KV_IDENTITY: "same"}},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def engine_pod(name: str, role: str, ready: bool = True) -> dict[str, Any]:
    """An engine pod of the dev model."""
    own = {labels.MODEL: MODEL, labels.ROLE: role, labels.ROUTED: "true"}
    return pod(name, own, ready)


@dataclass
class FakeEngine:
    """An engine with a cache of its own, and a store that it may share; `wrong_weights` changes its answers."""

    store: PrefixCache | None
    own: PrefixCache = field(default_factory=PrefixCache)
    wrong_weights: bool = False
    hits: float = 0
    queries: float = 0
    waiting: float = 0
    answered: float = 0

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Take what the store knows, compute the rest, and put it there."""
        model, prompt, salt = body["model"], prompt_of(body), str(body.get("cache_salt", ""))
        known = self.own.known(model, prompt, salt)
        if self.store is not None:
            self.queries += len(prompt) - known
            self.hits += max(0, self.store.known(model, prompt, salt) - known)
            self.store.add(model, prompt, salt)
        self.own.add(model, prompt, salt)
        self.answered += 1
        if self.wrong_weights:
            return whole_answer(body | {"model": f"{model}-other"}, None)
        return whole_answer(body, None)

    def metrics(self) -> str:
        """The engine's page of counters."""
        return (
            f'vllm:external_prefix_cache_hits_total{{engine="0"}} {self.hits}\n'
            f'vllm:external_prefix_cache_queries_total{{engine="0"}} {self.queries}\n'
            f'vllm:num_requests_waiting{{engine="0"}} {self.waiting}\n'
            f'vllm:request_success_total{{engine="0"}} {self.answered}\n'
        )


class FakeCluster:
    """Pods by label, and engines behind the pod proxy."""

    namespace = "moonstack-dev"

    def __init__(self, engines: dict[str, FakeEngine]) -> None:
        self.engines = engines
        self.objects = [engine_pod(name, name.split("-")[0]) for name in engines]
        self.objects.append(pod("mooncake-master-0", {"app.kubernetes.io/name": names.KV_MASTER}))
        self.hpas: list[dict[str, Any]] = []
        self.segments = "10.0.0.1:12345\n"
        for number, one in enumerate(self.objects):
            one["status"]["podIP"] = f"10.0.0.{number}"
        self.objects.append(pod("dev-wide-router-1", {"app.kubernetes.io/component": "router"}))

    async def pods(self, selector: dict[str, str]) -> list[dict[str, Any]]:
        return [o for o in self.objects if selector.items() <= o["metadata"]["labels"].items()]

    def path(self, resource: str, name: str = "", group: str = "") -> str:
        return f"/{resource}"

    async def items(self, path: str, selector: Any = None) -> list[dict[str, Any]]:
        return self.hpas if path == "/horizontalpodautoscalers" else []

    async def through_pod(self, pod: str, port: int, path: str, *, body: Any = None) -> Reply:
        if path == "/workers":
            known = [o["status"]["podIP"] for o in self.objects if labels.ROLE in o["metadata"]["labels"]]
            return Reply(200, json.dumps([f"http://{address}:8000" for address in known]))
        if path == "/get_all_segments":
            return Reply(200, self.segments)
        engine = self.engines[pod]
        return Reply(200, engine.metrics() if body is None else json.dumps(engine.answer(body)))


class FakeStack(Channel):
    """A gateway whose chats also pass the first prefill and the first decode engine, as in a real stack."""

    def __init__(self, plan: ChannelPlan, cluster: FakeCluster) -> None:
        super().__init__(plan)
        self.cluster = cluster
        self.fallback = True
        self.heed_all = False
        self.salted: list[bool] = []
        self.own: dict[str, str] = {}
        """Name that is asked for → who answers, where that is not the cluster."""

    async def _chat(self, request: Request) -> Response:
        response = await super()._chat(request)
        smoke_key = "dev-client" not in self.requests or self.heed_all
        wished = smoke_key and request.headers.get("moonstack-target") in ("channel", "fallback")
        place = f"{'channel' if wished and self.fallback else 'cluster'}/{MODEL}"
        response.headers["x-moonstack-served-by"] = self.own.get((await request.json())["model"], place)
        return response

    async def _prefill(self, body: dict[str, Any]) -> None:
        self.salted.append("cache_salt" in body)
        await super()._prefill(body)
        for role in (names.PREFILL, names.DECODE):
            name = next((name for name in self.cluster.engines if name.startswith(role)), None)
            if name:
                self.cluster.engines[name].answer(body)
