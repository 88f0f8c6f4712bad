"""The agent's loop: read versions, count tokens, render the list, and write it when it changed.

Off the request path: while the agent is away, gateways go on with the last list.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from capacity.fetch import FetchError, fetch
from capacity.keys.config import AgentConfig
from capacity.keys.usage import Usage, token_counters
from capacity.kube import Kube, KubeError
from rules import names
from rules.digest import short
from rules.envoy_keys import FILE, ClientKey, client_keys_file

REWRITE_SECONDS: Final = 60.0
log = logging.getLogger(__name__)


class KeyAgent:
    """One agent; a second one would write the same."""

    def __init__(self, config: AgentConfig, kube: Kube) -> None:
        self._config = config
        self._kube = kube
        self._values: dict[str, str] = {}
        self._usage: Usage | None = None
        self._saved: dict[str, Any] = {}
        self._written = ""
        self._written_at = 0.0

    async def run(self) -> None:
        """Until cancelled. A step that fails is tried again: the API server or a gateway may be away for a while."""
        while True:
            try:
                await self.step(datetime.now(UTC))
            except KubeError as error:
                log.warning("the API server: %s", error)
            await asyncio.sleep(self._config.interval)

    async def step(self, now: datetime) -> None:
        """Do everything once. Raises KubeError."""
        usage = await self._usage_at(now)
        pods = await self._gateways()
        await self._count(pods, usage)
        text = render(self._config, await self._versions(), usage.tokens, now)
        await self._write(text, pods)
        await self._save(usage)

    async def _usage_at(self, now: datetime) -> Usage:
        if self._usage is None:
            stored = (await self._kube.get(self._path("configmaps", self._config.usage))).get("data") or {}
            self._saved = json.loads(stored.get("usage.json") or "{}")
            self._usage = Usage.restored(self._saved, now.date())
        self._usage.turn(now.date())
        return self._usage

    async def _versions(self) -> Mapping[str, str]:
        """Values by Secret; a version's Secret is immutable, so each is read once."""
        for key in self._config.keys:
            for name in key.secrets:
                if name not in self._values:
                    secret = await self._kube.get(self._path("secrets", name))
                    self._values[name] = base64.b64decode(secret["data"]["value"]).decode()
        return self._values

    async def _gateways(self) -> list[Mapping[str, Any]]:
        selector = ",".join(f"{key}={value}" for key, value in self._config.gateway_selector.items())
        return (await self._kube.get(self._path("pods"), {"labelSelector": selector}))["items"]

    async def _count(self, pods: list[Mapping[str, Any]], usage: Usage) -> None:
        if not any(key.tokens_per_day for key in self._config.keys):
            return
        for pod in pods:
            if address := pod.get("status", {}).get("podIP"):
                try:
                    page = await asyncio.wait_for(fetch(address, self._config.metrics_port, "/stats/prometheus"), 5)
                    usage.note(pod["metadata"]["uid"], token_counters(page))
                except (OSError, TimeoutError, FetchError) as error:
                    log.warning("metrics of %s: %s", pod["metadata"]["name"], type(error).__name__)
        usage.forget({pod["metadata"]["uid"] for pod in pods})

    async def _write(self, text: str, pods: list[Mapping[str, Any]]) -> None:
        """Written once a minute at least, as the agent may not read what is there; an equal list changes nothing."""
        now = asyncio.get_running_loop().time()
        if text != self._written or now - self._written_at >= REWRITE_SECONDS:
            encoded = base64.b64encode(text.encode()).decode()
            await self._kube.patch(self._path("secrets", names.CLIENT_KEYS), {"data": {FILE: encoded}})
            if text != self._written:
                log.info("the list of client keys changed")
            self._written, self._written_at = text, now
        for pod in pods:
            await self._nudge(pod, short(text))

    async def _nudge(self, pod: Mapping[str, Any], digest: str) -> None:
        """A changed annotation makes the kubelet sync the pod, and with it its Secrets, at once."""
        annotation = self._config.digest_annotation
        if (pod["metadata"].get("annotations") or {}).get(annotation) != digest:
            try:
                await self._kube.patch(
                    self._path("pods", pod["metadata"]["name"]), {"metadata": {"annotations": {annotation: digest}}}
                )
            except KubeError as error:
                if error.status != 404:
                    raise

    async def _save(self, usage: Usage) -> None:
        if (document := usage.document()) != self._saved:
            data = {"data": {"usage.json": json.dumps(document, sort_keys=True)}}
            await self._kube.patch(self._path("configmaps", self._config.usage), data)
            self._saved = json.loads(json.dumps(document))

    def _path(self, kind: str, name: str = "") -> str:
        return f"/api/v1/namespaces/{self._config.namespace}/{kind}" + (f"/{name}" if name else "")


def render(config: AgentConfig, values: Mapping[str, str], tokens: Mapping[str, float], now: datetime) -> str:
    """The gateway's list at a moment: valid keys, those whose tokens are used up marked as such."""
    return client_keys_file(
        ClientKey(
            key.id,
            values[name],
            exhausted=key.tokens_per_day is not None and tokens.get(key.id, 0) >= key.tokens_per_day,
        )
        for key in config.keys
        if key.valid_at(now)
        for name in key.secrets
    )
