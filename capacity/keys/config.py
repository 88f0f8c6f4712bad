"""What the key agent is told of the keys and the channel's prices, mounted as one JSON file; no value is in it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from rules import labels, names, ports
from rules.channel_panels import Price
from settings.keys import KeySettings


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentKey(_Frozen):
    """One key. A client key's versions are Secrets by these names, with the value under `value`; outbound ones are not read."""

    id: str
    secrets: tuple[str, ...] = ()
    outbound: bool = False
    pays_with: str | None = None
    """For a client key: the outbound key that pays for its requests at the channel."""
    not_before: datetime | None = None
    expires: datetime | None = None
    tokens_per_day: int | None = None
    spend_per_day: float | None = None

    def valid_at(self, now: datetime) -> bool:
        """Whether the key may be used at a moment."""
        return (self.not_before is None or self.not_before <= now) and (self.expires is None or now < self.expires)


class AgentConfig(_Frozen):
    """Everything the agent needs to know; times in seconds."""

    namespace: str
    keys: tuple[AgentKey, ...]
    prices: tuple[Price, ...] = ()
    interval: float = 5.0
    gateway_selector: dict[str, str] = {"app.kubernetes.io/name": names.GATEWAY}
    metrics_port: int = ports.GATEWAY_METRICS
    usage: str = names.KEY_AGENT
    """ConfigMap that keeps what was used in the day, so that a restart forgets nothing."""
    digest_annotation: str = f"{labels.PREFIX}/client-keys-digest"
    """Set on gateway pods when the list changes: the kubelet then takes the Secret up at once instead of within 90 s."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """The configuration from its file. Raises pydantic.ValidationError and OSError."""
        return cls.model_validate_json(path.read_text())

    @property
    def counts(self) -> bool:
        """Whether the gateways' metrics have to be read: for quotas, or while a key has an old version beside its new one."""
        return any(key.tokens_per_day or key.spend_per_day or len(key.secrets) > 1 for key in self.keys)

    @classmethod
    def of(
        cls,
        namespace: str,
        keys: Sequence[KeySettings],
        versions: Sequence[tuple[str, str]],
        channel_key: str | None = None,
        prices: Sequence[Price] = (),
    ) -> Self:
        """From the stack's keys; `versions` are pairs of key id and name of the version's Secret, `channel_key` pays by default."""
        return cls(
            namespace=namespace,
            prices=tuple(prices),
            keys=tuple(
                AgentKey(
                    id=key.id,
                    secrets=() if key.outbound else tuple(name for key_id, name in versions if key_id == key.id),
                    outbound=key.outbound,
                    pays_with=None if key.outbound else key.channel_key or channel_key,
                    not_before=key.not_before,
                    expires=key.expires,
                    tokens_per_day=key.tokens_per_day,
                    spend_per_day=key.spend_per_day,
                )
                for key in keys
            ),
        )
