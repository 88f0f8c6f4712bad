"""Keys: metadata in plain, values only as scalar secrets `moonstack:keyValue-<id>` or in Secrets Manager."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from settings.base import DnsLabel, Group

Purpose = Literal["debug", "fallback", "coding", "client", "smoke"]
OUTBOUND: frozenset[str] = frozenset({"debug", "fallback", "coding"})
"""Purposes whose keys the external channel issued (C8); the others are ours, presented by our clients."""


class KeySettings(Group):
    """One key's metadata; never its value."""

    id: DnsLabel
    purpose: Purpose
    owner: str = Field(min_length=1)
    """The application that holds the key."""
    qps: int | None = Field(default=None, ge=1)
    tokens_per_day: int | None = Field(default=None, ge=1)
    not_before: datetime | None = None
    expires: datetime | None = None

    @property
    def outbound(self) -> bool:
        """Whether the key goes to the external channel (else a client presents it to our gateway)."""
        return self.purpose in OUTBOUND


class KeysSettings(Group):
    """All keys of the stack and where their values come from."""

    source: Literal["config", "secretsManager", "local", "placeholder"] = "config"
    """config: encrypted stack configuration; local: generated into the state directory (dev only); placeholder: offline verbs only."""
    keys: tuple[KeySettings, ...] = ()
