"""The agent's loop: read versions, count use, render the list of keys and the channel's gate, and write them when they changed.

Values of the channel's keys that have ended are taken out of the gateway's Secret.

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
from capacity.keys.last_use import LastUse, version_counts
from capacity.keys.quotas import closed, exhausted, meters
from capacity.keys.usage import Usage, token_counts
from capacity.kube import Kube, KubeError
from rules import channel_gate, labels, names
from rules.channel_gate import channel_gate_file
from rules.digest import short
from rules.envoy_keys import FILE, ClientKey, client_keys_file, version_name
from rules.key_ends import key_ends
from rules.key_use import FILE as USAGE_FILE

REWRITE_SECONDS: Final = 60.0
log = logging.getLogger(__name__)


class KeyAgent:
    """One agent; a second one would write the same."""

    def __init__(self, config: AgentConfig, kube: Kube) -> None:
        self._config = config
        self._kube = kube
        self._values: dict[str, str] = {}
        self._usage: Usage | None = None
        self._last_use = LastUse()
        self._saved: dict[str, Any] = {}
        self._written = ("", "")
        self._written_at = 0.0
        self._ended: set[str] = set()
        self._ended_at = 0.0

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
        values = await self._versions()
        pods = await self._gateways()
        await self._count(pods, usage, now)
        keys = render(self._config, values, usage.used, now)
        await self._write(keys, channel_gate_file(closed(self._config, usage.used, now)), pods)
        await self._save(usage)
        await self._take_away(ended(self._config, now))

    async def _usage_at(self, now: datetime) -> Usage:
        if self._usage is None:
            stored = (await self._kube.get(self._path("configmaps", self._config.usage))).get("data") or {}
            self._saved = json.loads(stored.get(USAGE_FILE) or "{}")
            self._usage = Usage.restored(self._saved, now.date())
            self._last_use = LastUse.restored(self._saved)
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

    async def _count(self, pods: list[Mapping[str, Any]], usage: Usage, now: datetime) -> None:
        """All pods at once: one that hangs does not keep the others from being counted in time."""
        if not self._config.counts:
            return
        running = [pod for pod in pods if pod.get("status", {}).get("podIP")]
        for pod, page in zip(running, await asyncio.gather(*map(self._page, running)), strict=True):
            if page is not None:
                started_today = pod["status"].get("startTime", "").startswith(usage.day.isoformat())
                usage.note(pod["metadata"]["uid"], meters(self._config, token_counts(page)), started_today)
                self._last_use.note(pod["metadata"]["uid"], version_counts(page), now)
        living = {pod["metadata"]["uid"] for pod in pods}
        usage.forget(living)
        self._last_use.forget(living, self._overlapping())

    def _overlapping(self) -> set[str]:
        """Versions of keys that have more than one: a rotation waits for the old one to fall out of use."""
        rotated = [key for key in self._config.keys if len(key.secrets) > 1]
        return {version_name(key.id, self._values[name]) for key in rotated for name in key.secrets}

    async def _page(self, pod: Mapping[str, Any]) -> str | None:
        address = pod["status"]["podIP"]
        try:
            return await asyncio.wait_for(fetch(address, self._config.metrics_port, "/stats/prometheus"), 5)
        except (OSError, TimeoutError, FetchError) as error:
            log.warning("metrics of %s: %s", pod["metadata"]["name"], type(error).__name__)
            return None

    async def _write(self, keys: str, gate: str, pods: list[Mapping[str, Any]]) -> None:
        """Written once a minute at least, as the agent may not read what is there; equal files change nothing."""
        now = asyncio.get_running_loop().time()
        if (keys, gate) != self._written or now - self._written_at >= REWRITE_SECONDS:
            encoded = base64.b64encode(keys.encode()).decode()
            await self._kube.patch(self._path("secrets", names.CLIENT_KEYS), {"data": {FILE: encoded}})
            await self._kube.patch(self._path("configmaps", names.CHANNEL_GATE), {"data": {channel_gate.FILE: gate}})
            if (keys, gate) != self._written:
                log.info("the list of client keys or the channel's gate changed")
            self._written, self._written_at = (keys, gate), now
        for pod in pods:
            await self._nudge(pod, short([keys, gate]))

    async def _take_away(self, keys: set[str]) -> None:
        """Values of the channel's keys that have ended leave the gateway's Secret; once a minute again, should one be back.

        Only where the Secret says the same ends as the configuration: a deployment that gave a key a new one came first then.
        """
        now = asyncio.get_running_loop().time()
        if not keys or (keys == self._ended and now - self._ended_at < REWRITE_SECONDS):
            return
        declared = key_ends((key.id, key.expires) for key in self._config.keys if key.outbound)
        for key_id in sorted(keys):
            same = {"op": "test", "path": f"/metadata/annotations/{_pointer(labels.KEY_ENDS)}", "value": declared}
            gone = {"op": "remove", "path": f"/data/{key_id}"}
            if await self._kube.operate(self._path("secrets", names.CHANNEL_KEYS), [same, gone]):
                log.info("key %s has ended: its value is out of %s", key_id, names.CHANNEL_KEYS)
        self._ended, self._ended_at = keys, now

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
        if (document := usage.document() | self._last_use.document()) != self._saved:
            data = {"data": {USAGE_FILE: json.dumps(document, sort_keys=True)}}
            await self._kube.patch(self._path("configmaps", self._config.usage), data)
            self._saved = json.loads(json.dumps(document))

    def _path(self, kind: str, name: str = "") -> str:
        return f"/api/v1/namespaces/{self._config.namespace}/{kind}" + (f"/{name}" if name else "")


def ended(config: AgentConfig, now: datetime) -> set[str]:
    """The outbound keys whose life is over."""
    return {key.id for key in config.keys if key.outbound and key.expires is not None and key.expires <= now}


def _pointer(name: str) -> str:
    """A member's name in a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def render(config: AgentConfig, values: Mapping[str, str], used: Mapping[str, float], now: datetime) -> str:
    """The gateway's list at a moment: valid keys, those whose tokens are used up marked as such."""
    return client_keys_file(
        ClientKey(key.id, values[name], exhausted=exhausted(key, used))
        for key in config.keys
        if key.valid_at(now)
        for name in key.secrets
    )
