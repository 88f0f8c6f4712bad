"""Which replica acts: the holder of a Lease. Judged by a steady clock, so that a jumping wall clock moves nothing."""

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

from capacity.kube import Kube, KubeError

log = logging.getLogger(__name__)
DURATION_SECONDS = 8
RENEW_SECONDS = 2.0


class Elector:
    """Holds or watches one Lease; `leading` turns false as soon as renewal is overdue."""

    def __init__(self, kube: Kube, namespace: str, name: str, identity: str) -> None:
        self._kube, self._identity, self._name, self._namespace = kube, identity, name, namespace
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._renewed = -1e9
        self._seen: tuple[str, float] = ("", time.monotonic())

    @property
    def leading(self) -> bool:
        """Whether this replica may act now; a margin keeps two replicas from acting at once."""
        return time.monotonic() - self._renewed < DURATION_SECONDS - RENEW_SECONDS

    async def run(self) -> None:
        """Try for the Lease until cancelled, then give it back."""
        try:
            while True:
                try:
                    await self._try()
                except KubeError as error:
                    log.warning("lease: %s", error)
                await asyncio.sleep(RENEW_SECONDS)
        finally:
            if self.leading:
                await self._release()

    async def _try(self) -> None:
        started = time.monotonic()
        try:
            lease = await self._kube.get(f"{self._leases}/{self._name}")
        except KubeError as error:
            if error.status != 404:
                raise
            await self._kube.create(self._leases, self._body({}))
            self._renewed = started
            return
        holder = lease["spec"].get("holderIdentity") or ""
        if holder != self._identity and not self._expired(lease, holder):
            self._renewed = -1e9
            return
        await self._kube.put(f"{self._leases}/{self._name}", self._body(lease, taken=holder != self._identity))
        self._renewed = started

    def _expired(self, lease: dict[str, Any], holder: str) -> bool:
        """Not renewed for its whole duration as seen from here."""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, time.monotonic())
        return not holder or time.monotonic() - self._seen[1] > DURATION_SECONDS

    async def _release(self) -> None:
        try:
            lease = await self._kube.get(f"{self._leases}/{self._name}")
            if lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"]["holderIdentity"] = ""
                await self._kube.put(f"{self._leases}/{self._name}", lease)
        except KubeError as error:
            log.warning("giving the lease back: %s", error)

    def _body(self, lease: dict[str, Any], taken: bool = True) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = lease.get("spec", {}) | {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": DURATION_SECONDS,
            "renewTime": now,
        }
        if taken:
            spec |= {"acquireTime": now, "leaseTransitions": spec.get("leaseTransitions", -1) + 1}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": lease.get("metadata") or {"name": self._name, "namespace": self._namespace},
            "spec": spec,
        }
