"""What the key agent is told: the versions of each client key, mounted as one JSON file; no value is in it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from rules import labels, names, ports
from settings.keys import KeySettings


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentKey(_Frozen):
    """One client key: its versions are Secrets by these names, with the value under `value`."""

    id: str
    secrets: tuple[str, ...]
    not_before: datetime | None = None
    expires: datetime | None = None
    tokens_per_day: int | None = None

    def valid_at(self, now: datetime) -> bool:
        """Whether the key may be used at a moment."""
        return (self.not_before is None or self.not_before <= now) and (self.expires is None or now < self.expires)


class AgentConfig(_Frozen):
    """Everything the agent needs to know; times in seconds."""

    namespace: str
    keys: tuple[AgentKey, ...]
    interval: float = 5.0
    gateway_selector: dict[str, str] = {"app.kubernetes.io/name": names.GATEWAY}
    metrics_port: int = ports.GATEWAY_METRICS
    usage: str = names.KEY_AGENT
    """ConfigMap that keeps the tokens of the day, so that a restart forgets nothing."""
    digest_annotation: str = f"{labels.PREFIX}/client-keys"
    """Set on gateway pods when the list changes: the kubelet then takes the Secret up at once instead of within 90 s."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """The configuration from its file. Raises pydantic.ValidationError and OSError."""
        return cls.model_validate_json(path.read_text())

    @classmethod
    def of(cls, namespace: str, keys: Sequence[KeySettings], versions: Sequence[tuple[str, str]]) -> Self:
        """From the stack's keys; `versions` are pairs of key id and name of the version's Secret."""
        clients = [key for key in keys if not key.outbound]
        return cls(
            namespace=namespace,
            keys=tuple(
                AgentKey(
                    id=key.id,
                    secrets=tuple(name for key_id, name in versions if key_id == key.id),
                    not_before=key.not_before,
                    expires=key.expires,
                    tokens_per_day=key.tokens_per_day,
                )
                for key in clients
            ),
        )
