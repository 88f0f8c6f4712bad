"""The file by which the gateway learns its clients' keys: one Envoy extension configuration (ECDS), read from a mounted Secret."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rules.digest import canonical
from rules.fingerprint import fingerprint

FILTER: Final = "client-keys"
"""The filter's name in the listener; Envoy takes an ECDS resource only under the same name."""
FILTER_TYPE: Final = "type.googleapis.com/envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth"
FILE: Final = "keys.yaml"
CLIENT_HEADER: Final = "x-moonstack-client"
"""Carries the key's id inside the gateway; removed from every request that comes in, and before every request goes out."""
EXHAUSTED: Final = "!exhausted"
"""Suffix of a client's id whose day's tokens are used up: the gateway answers it with 429 (no id contains `!`)."""
_CLIENT: Final = re.compile(rf"(?P<id>[^@!]*)(?:@[0-9a-f]*)?(?P<exhausted>{EXHAUSTED})?")


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One key value that is valid now; several may share an id, so that a rotation overlaps."""

    id: str
    value: str = field(repr=False)
    exhausted: bool = False
    """Whether the key's tokens of the day are used up."""

    @property
    def client(self) -> str:
        """What Envoy is told of whoever presents the value: `<id>@<version>`, and the mark of used up tokens."""
        return version_name(self.id, self.value) + (EXHAUSTED if self.exhausted else "")


def version_name(key_id: str, value: str) -> str:
    """A version of a key, in the list and in the gateway's metrics: the id and the first 8 digits of the fingerprint."""
    return f"{key_id}@{fingerprint(value)[:8]}"


def client_keys_file(entries: Iterable[ClientKey]) -> str:
    """The text of `keys.yaml` (JSON, which is YAML). Raises ValueError, naming ids and never values.

    Envoy would refuse a value that occurs twice and keep the old list, so it is refused here.
    """
    keys = sorted(entries, key=lambda key: (key.id, key.value))
    seen: dict[str, str] = {}
    for key in keys:
        if not key.value or any(not 33 <= ord(character) <= 126 for character in key.value):
            raise ValueError(f"key {key.id}: the value is empty or has blanks, line ends or non-ASCII characters")
        if key.value in seen:
            raise ValueError(f"key {key.id}: its value is also the value of key {seen[key.value]}")
        seen[key.value] = key.id
    config = {
        "@type": FILTER_TYPE,
        "credentials": [{"key": key.value, "client": key.client} for key in keys],
        "key_sources": [{"header": "authorization"}],
        "forwarding": {"header": CLIENT_HEADER, "hide_credentials": True},
    }
    resource = {
        "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        "name": FILTER,
        "typed_config": config,
    }
    return canonical({"resources": [resource]}) + "\n"


def client_keys(text: str) -> list[ClientKey]:
    """The entries of a file that `client_keys_file` wrote. Raises ValueError for any other text."""
    try:
        credentials = json.loads(text)["resources"][0]["typed_config"]["credentials"]
        return [_entry(entry["client"], entry["key"]) for entry in credentials]
    except (KeyError, IndexError, TypeError, json.JSONDecodeError):
        raise ValueError(f"not a {FILE} of this program") from None


def _entry(client: str, value: str) -> ClientKey:
    parts = _CLIENT.fullmatch(client)
    if parts is None:
        raise KeyError(client)
    return ClientKey(parts["id"], value, bool(parts["exhausted"]))
