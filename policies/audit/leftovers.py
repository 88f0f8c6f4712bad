"""Values that live on in a Secret beyond their life: of keys that ended, that left the stack file, or that a rotation replaced."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import kr8s

from policies.audit.cluster import guarded
from policies.audit.run import Place, Unreadable
from policies.audit.search import Canaries
from rules import labels, names
from rules.envoy_keys import FILE, ClientKey, client_keys, version_name
from rules.fingerprint import fingerprint
from rules.key_ends import way_out
from settings.keys import OUTBOUND, KeySettings
from settings.settings import Settings

GRACE: Final = timedelta(seconds=60)
"""What the key agent and the operator may take."""


def place(api: kr8s.Api, settings: Settings, stack: str) -> Place:
    """The keys' Secrets of the stack's namespace; values are told apart by fingerprint and never leave this process."""

    def read() -> Iterator[tuple[str, Any]]:
        secrets: list[Any] = list(api.get("secrets", namespace=settings.cluster.namespace))
        found = [secret for secret in secrets if _of_keys(secret.raw)]
        versions = {fingerprint(value) for one in found for value in _version(one.raw)}
        yield from ((f"Secret {one.raw['metadata']['name']}", (one.raw, versions)) for one in found)

    def find(content: Any, _: Canaries) -> Iterable[tuple[str, str]]:
        secret, versions = content
        return leftovers(secret, versions, settings.keys.keys, stack, datetime.now(UTC))

    return Place("cluster: keys beyond their life", lambda: guarded(read()), find)


def leftovers(
    secret: Mapping[str, Any], versions: Set[str], keys: Iterable[KeySettings], stack: str, now: datetime
) -> Iterator[tuple[str, str]]:
    """Path and cause of each value of a Secret whose life is over; `versions` are the fingerprints that have a Secret of their own."""
    declared = {key.id: key for key in keys}
    for path, key_id, outbound in _holds(secret):
        key = declared.get(key_id)
        if key is None or key.outbound != outbound:
            yield path, f"a value of key {key_id}, which {stack} doesn't declare as such: pulumi up takes it away"
        elif key.expires is not None and key.expires + GRACE <= now:
            yield path, f"a value of key {key_id}, which has ended; {way_out(stack, key_id, outbound=outbound)}"
    for entry in _listed(secret):
        if fingerprint(entry.value) not in versions:
            name = version_name(entry.id, entry.value)
            yield f"data.{FILE}", f"version {name}, which was replaced: the key agent takes it away, see that it runs"


def _of_keys(secret: Mapping[str, Any]) -> bool:
    metadata = secret.get("metadata") or {}
    return metadata.get("name") in (names.CLIENT_KEYS, names.CHANNEL_KEYS) or bool(_label(secret, labels.KEY_ID))


def _holds(secret: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Path, key id and kind (outbound or not) of each value in one of the keys' Secrets."""
    data = secret.get("data") or {}
    if key_id := _label(secret, labels.KEY_ID):
        if data:
            yield "data", key_id, _label(secret, labels.PURPOSE) in OUTBOUND
    elif secret["metadata"]["name"] == names.CHANNEL_KEYS:
        yield from ((f"data.{key_id}", key_id, True) for key_id, value in data.items() if value)
    else:
        yield from ((f"data.{FILE}", key_id, False) for key_id in sorted({entry.id for entry in _listed(secret)}))


def _version(secret: Mapping[str, Any]) -> Iterator[str]:
    """The values of a version's own Secret."""
    if _label(secret, labels.KEY_ID):
        yield from (base64.b64decode(value).decode() for value in (secret.get("data") or {}).values())


def _listed(secret: Mapping[str, Any]) -> list[ClientKey]:
    """The entries of the gateway's list of clients; none for another Secret. Raises Unreadable."""
    encoded = (secret.get("data") or {}).get(FILE)
    if secret["metadata"].get("name") != names.CLIENT_KEYS or not encoded:
        return []
    try:
        return client_keys(base64.b64decode(encoded).decode())
    except ValueError as error:
        raise Unreadable(f"{names.CLIENT_KEYS}: {error}") from None


def _label(secret: Mapping[str, Any], name: str) -> str:
    return (secret["metadata"].get("labels") or {}).get(name, "")
