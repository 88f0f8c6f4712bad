"""Where the smoke key comes from: the environment, dev's state folder, or the cluster; known to the redactor at once."""

import base64
import os
from datetime import UTC, datetime
from typing import Final

from rules import labels
from rules.key_ends import way_out
from settings.key_values.local import LocalKeys
from settings.keys import KeySettings
from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.errors import PermanentError
from smoke.redact import REDACTOR

VARIABLE: Final = "MOONSTACK_SMOKE_KEY"


def smoke_key(settings: Settings) -> KeySettings:
    """The declared key that probes present. Raises PermanentError when none is declared."""
    for key in settings.keys.keys:
        if key.purpose == "smoke":
            return key
    raise PermanentError("no key of purpose smoke is declared", "add one under moonstack:keys.keys, such as dev-smoke")


def refuse_ended(key: KeySettings, settings: Settings) -> None:
    """Nothing is sent with a key whose life is over. Raises PermanentError with the way out."""
    if key.expires is not None and key.has_ended(datetime.now(UTC)):
        ended = f"key {key.id} has expired on {key.expires:%Y-%m-%d %H:%M} UTC"
        raise PermanentError(ended, way_out(settings.environment, key.id, outbound=key.outbound))


def refuse_ended_payer(settings: Settings) -> None:
    """As `refuse_ended`, for the smoke key and the channel's key that pays for its requests."""
    key = smoke_key(settings)
    refuse_ended(key, settings)
    payer = (key.channel_key or settings.channel.key) if settings.channel.enabled else None
    for one in settings.keys.keys:
        if one.id == payer:
            refuse_ended(one, settings)


async def read_smoke_key(settings: Settings, cluster: Cluster | None) -> str:
    """The smoke key's value. Raises PermanentError for a key that has ended, and naming the places that were looked at."""
    for key in [key for key in settings.keys.keys if key.purpose == "smoke"][:1]:
        refuse_ended(key, settings)
    if value := os.environ.get(VARIABLE, "").strip():
        REDACTOR.learn(value)
        return value
    return await read_key(settings, smoke_key(settings).id, cluster)


async def read_key(settings: Settings, key_id: str, cluster: Cluster | None) -> str:
    """A declared key's value. Raises PermanentError naming the places that were looked at."""
    for key in settings.keys.keys:
        if key.id == key_id:
            refuse_ended(key, settings)
    looked = [f"the variable {VARIABLE}"]
    value = None
    if settings.keys.source == "local":
        local = LocalKeys()
        looked.append(local.where(key_id))
        value = local.read([key_id]).get(key_id, {}).get("current")
    if value is None and cluster is not None:
        looked.append(f"the Secrets of namespace {cluster.namespace}")
        value = await _from_cluster(cluster, key_id)
    if not value:
        raise PermanentError(
            f"the value of key {key_id} is in none of: {', '.join(looked)}",
            f"set {VARIABLE}, or deploy the stack's keys",
        )
    REDACTOR.learn(value.strip())
    return value.strip()


async def _from_cluster(cluster: Cluster, key_id: str) -> str | None:
    """The current version is an immutable Secret with the one entry `value`."""
    for secret in await cluster.items(cluster.path("secrets"), {labels.KEY_ID: key_id, labels.KEY_STAGE: "current"}):
        if encoded := secret.get("data", {}).get("value"):
            return base64.b64decode(encoded).decode()
    return None
