"""Where a model's weights come from, and how they reach a node."""

import re
from typing import Annotated, Final, Literal

from pydantic import AnyHttpUrl, Field, StringConstraints, model_validator

from rules.quantity import parse
from settings.base import Bytes, DnsLabel, Group

Revision = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{12,64}|local)$")]
"""A pinned revision: at least 12 hex digits. `local` takes the digest of the development model of that name."""
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

FETCHED: Final = frozenset({"s3", "hub", "modelscope"})
"""Sources that an init container copies to the node; the others are mounted."""
_LOCATIONS: Final = {
    "hostPath": (r"/[^\s]+", "an absolute folder of the nodes, such as /data/models/name"),
    "pvc": (r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[^\s]+)?", "claim or claim/folder"),
    "s3": (r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s]*)?", "s3://bucket/prefix"),
    "hub": (r"[\w.-]+/[\w.-]+", "organisation/repository"),
    "modelscope": (r"[\w.-]+/[\w.-]+", "organisation/repository"),
    "image": (r"[a-z0-9][^\s@]*@sha256:[0-9a-f]{64}", "an image reference pinned by digest, name@sha256:…"),
    "development": (r"[a-z]([-a-z0-9]*[a-z0-9])?", "the name of a development model"),
}


class WeightsCache(Group):
    """A folder of each node that keeps fetched weights; it must be writable by user 65532."""

    path: str = Field(default="/var/lib/moonstack/weights", pattern=r"^/[^\s]+$")
    """Folder on the node."""
    limit: Bytes
    """The least recently used models that no pod holds are evicted before the folder passes this."""


class WeightsSettings(Group):
    """A model's weights at one pinned revision."""

    source: Literal["hostPath", "pvc", "s3", "hub", "modelscope", "image", "development"]
    """Where the weights are; development: made by `make up`, for the local cluster."""
    location: str = Field(min_length=1)
    """hostPath: folder; pvc: claim[/folder]; s3: s3://bucket/prefix; hub, modelscope: repository; image: reference; development: name."""
    revision: Revision
    """The pinned revision, 12 to 64 hex digits; `local` with source development alone."""
    size: Bytes
    """Bytes of the weights on disk; the startup probe's budget and the cache's room follow from it."""
    load_bandwidth: Bytes | None = None
    """Bytes a second from disk to the chip; the chip profile's figure when not given."""
    download_bandwidth: Bytes = "200Mi"
    """Bytes a second from s3 or hub to a node."""
    checksums: Sha256 | None = None
    """SHA-256 of the source's file SHA256SUMS, which lists every other file; needed for s3. A hub states its own checksums."""
    endpoint: AnyHttpUrl | None = None
    """s3: another endpoint than AWS's; hub: a mirror of huggingface.co."""
    credentials_secret: DnsLabel | None = None
    """A Secret whose entries become the fetcher's environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or HF_TOKEN."""
    cache: WeightsCache | None = None
    """Without a cache every pod fetches for itself."""
    offline: bool = False
    """Never fetch: the cache of the node holds the weights already, or the pod fails with that reason."""

    @model_validator(mode="after")
    def _options_fit_the_source(self) -> "WeightsSettings":
        pattern, shape = _LOCATIONS[self.source]
        if not re.fullmatch(pattern, self.location):
            raise ValueError(f"location {self.location!r} of source {self.source} must be {shape}; correct it")
        if ".." in self.location.split("/"):
            raise ValueError(f"location {self.location!r} leaves its folder; remove `..`")
        if self.source == "s3" and self.checksums is None:
            raise ValueError("source s3 needs checksums; give the SHA-256 of the prefix's file SHA256SUMS")
        if self.source == "hub" and len(self.revision) != 40:
            raise ValueError(
                f"revision {self.revision} of source hub must be a whole commit of 40 digits; write all of it"
            )
        if self.revision == "local" and self.source != "development":
            raise ValueError("revision local is for source development; pin at least 12 hex digits")
        if self.offline and self.cache is None:
            raise ValueError("offline needs a cache that holds the weights; add cache, or set offline to false")
        if self.source not in FETCHED and (unused := self._fetch_options()):
            raise ValueError(f"{', '.join(unused)} is for s3, hub and modelscope; remove it for source {self.source}")
        if self.cache is not None and parse(self.cache.limit) < parse(self.size):
            raise ValueError(f"cache.limit {self.cache.limit} is below size {self.size}; raise it, or remove the cache")
        return self

    @property
    def fetched(self) -> bool:
        """Whether an init container copies the weights to the node."""
        return self.source in FETCHED

    def _fetch_options(self) -> list[str]:
        options = {
            "checksums": self.checksums,
            "endpoint": self.endpoint,
            "credentialsSecret": self.credentials_secret,
            "cache": self.cache,
        }
        return [name for name, value in options.items() if value is not None]
