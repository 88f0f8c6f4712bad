"""Keys: metadata in plain, values only as scalar secrets `moonstack:keyValue-<id>` or in Secrets Manager."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from settings.base import DnsLabel, Group

Purpose = Literal["debug", "fallback", "coding", "client", "smoke"]
OUTBOUND: frozenset[str] = frozenset({"debug", "fallback", "coding"})
"""Purposes whose keys the external channel issued (C8); the others are ours, presented by our clients."""


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]
"""A date or time; UTC unless it says otherwise. Quote it in the stack file."""


class KeySettings(Group):
    """One key's metadata; never its value."""

    id: DnsLabel
    """The key's name: in Secrets, outputs, logs and metrics."""
    purpose: Purpose
    """client, smoke: keys that we issue, for our callers and probes; debug, fallback, coding: keys of the channel."""
    owner: str = Field(min_length=1)
    """The application that holds the key."""
    qps: int | None = Field(default=None, ge=1, le=1_000_000)
    """Requests a second at each gateway pod; more are answered with 429."""
    tokens_per_day: int | None = Field(default=None, ge=1, le=10**15)
    """Tokens until midnight UTC, over all gateway pods; then 429. Of an outbound key: those at the channel, which is closed then."""
    spend_per_day: float | None = Field(default=None, gt=0, le=10**9)
    """Yuan until midnight UTC at the channel (tokens x price), over all gateway pods; then the channel is closed with 429.

    Of an outbound key: what it pays for; of a client key: what its own requests cost.
    """
    channel_key: DnsLabel | None = None
    """Client keys: the outbound key that pays for this client's requests at the channel; `channel.key` when not given.

    With one of purpose debug the client may also choose its target (header `moonstack-target`).
    """
    not_before: Moment | None = None
    """The gateway refuses a client key before this moment."""
    expires: Moment | None = None
    """From this moment the key is refused; required in prod. Deployments warn 14 days ahead."""

    def valid_at(self, now: datetime) -> bool:
        """Whether the key may be used at a moment."""
        return (self.not_before is None or self.not_before <= now) and (self.expires is None or now < self.expires)

    def has_ended(self, now: datetime) -> bool:
        """Whether the key's life is over at a moment."""
        return self.expires is not None and self.expires <= now

    @property
    def has_quota(self) -> bool:
        """Whether what the key uses in a day is limited."""
        return bool(self.tokens_per_day or self.spend_per_day)

    @property
    def outbound(self) -> bool:
        """Whether the key goes to the external channel (else a client presents it to our gateway)."""
        return self.purpose in OUTBOUND


class SecretStore(Group):
    """A SecretStore of the External Secrets operator that reads the stack's Secrets Manager."""

    name: DnsLabel
    """Its name."""
    kind: Literal["SecretStore", "ClusterSecretStore"] = "SecretStore"
    """Of the stack's namespace, or of the cluster."""


class KeysSettings(Group):
    """All keys of the stack and where their values come from."""

    source: Literal["config", "secretsManager", "local", "placeholder"] = "config"
    """config: encrypted stack configuration; local: generated into the state directory (dev only); placeholder: offline verbs only."""
    secrets_prefix: str = Field(default="moonstack/", pattern=r"^[A-Za-z0-9/_+=.@-]*$")
    """Secrets Manager: the secret of a key is called `<prefix><environment>/<id>`."""
    agent: bool = True
    """Whether the key agent runs in the cluster: an expired key is refused within a minute, and quotas of a day are enforced.
    Without it an expired key waits for the next deployment."""
    region: str | None = Field(default=None, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=63)
    """Secrets Manager: the AWS region; the ambient one when not given."""
    delivery: Literal["pulumi", "external-secrets"] = "pulumi"
    """external-secrets: the operator fetches values into the cluster, and none enters Pulumi's state; needs `store` and the agent."""
    store: SecretStore | None = None
    """For delivery external-secrets: where the operator reads."""
    keys: tuple[KeySettings, ...] = ()
    """The keys."""
