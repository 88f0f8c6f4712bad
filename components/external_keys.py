"""Keys that the External Secrets operator brings into the cluster, so that no value enters Pulumi's state."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from components.objects import Manifest
from settings.key_values import Stage
from settings.key_values.secrets_manager import LABELS, secret_name
from settings.settings import Settings

API: Final = "external-secrets.io/v1"
ONCE: Final = "0"
"""Fetched once, and again only when the ExternalSecret itself changes: a label of Secrets Manager that moves on doesn't
change what stands under a version's fingerprint, and a version that becomes current gets its label."""
EVERY_MINUTE: Final = "1m"


@dataclass(frozen=True, kw_only=True)
class ExternalStore:
    """The operator's SecretStore of this stack, and what names secrets in Secrets Manager."""

    name: str
    kind: str
    environment: str
    prefix: str

    @classmethod
    def of(cls, settings: Settings) -> "ExternalStore | None":
        """The store, or None where the program delivers keys itself."""
        keys = settings.keys
        if keys.delivery != "external-secrets" or keys.store is None:
            return None
        return cls(
            name=keys.store.name, kind=keys.store.kind, environment=settings.environment, prefix=keys.secrets_prefix
        )


def external_secret(
    store: ExternalStore,
    metadata: Mapping[str, Any],
    files: Mapping[str, tuple[str, Stage]],
    *,
    refresh: str,
    ends: Mapping[str, datetime | None] | None = None,
) -> Manifest:
    """An ExternalSecret whose Secret has the same name, labels and annotations; `files` maps file → key id and stage.

    `ends` maps file → moment from which the file is empty: the operator renders it anew with each refresh.
    `OnChange` and not `immutable`: the operator (2.9.0) never touches an immutable Secret again, its labels neither,
    nor one whose interval is 0, and readers find a key's current version by its label.
    """
    timed = {file: _until(file, end) for file, end in (ends or {}).items() if end and file in files}
    shown = {field: dict(metadata[field]) for field in ("labels", "annotations") if field in metadata}
    return {
        "apiVersion": API,
        "kind": "ExternalSecret",
        "metadata": dict(metadata)
        | {"annotations": {**shown.get("annotations", {}), "pulumi.com/waitFor": "condition=Ready"}},
        "spec": {
            "refreshPolicy": "OnChange" if refresh == ONCE else "Periodic",
            "refreshInterval": refresh,
            "secretStoreRef": {"name": store.name, "kind": store.kind},
            "target": {
                "name": metadata["name"],
                "template": {
                    "type": "Opaque",
                    "metadata": shown,
                    "mergePolicy": "Merge",
                    **({"data": timed} if timed else {}),
                },
            },
            "data": [
                {
                    "secretKey": file,
                    "remoteRef": {
                        "key": secret_name(store.environment, store.prefix, key_id),
                        "version": LABELS[stage],
                    },
                }
                for file, (key_id, stage) in files.items()
            ],
        },
    }


def _until(file: str, end: datetime) -> str:
    """A template (Go's, with sprig's functions) that is the file's value before its end, and empty from then on."""
    return f'{{{{ if lt (now).Unix {math.ceil(end.timestamp())} }}}}{{{{ index . "{file}" }}}}{{{{ end }}}}'
