"""API keys in the cluster: an immutable Secret for each version, and the two Secrets that the gateway mounts."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pulumi

from capacity.keys.config import AgentConfig
from components.context import Context
from components.external_keys import EVERY_MINUTE, ONCE, ExternalStore, external_secret
from components.key_source import KeyVersion
from components.objects import declare
from rules import channel_gate, labels, names
from rules.channel_gate import channel_gate_file
from rules.channel_panels import Price
from rules.envoy_keys import FILE, ClientKey, client_keys_file
from rules.key_ends import key_ends
from settings.key_values import Stage
from settings.keys import KeySettings
from settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ApiKeysArgs:
    """The declared keys and all their versions; `now` decides which client keys are valid."""

    keys: tuple[KeySettings, ...]
    versions: tuple[KeyVersion, ...]
    now: datetime | None = None
    agent: bool = False
    """The key agent writes the list of client keys once it exists; the program only begins it."""
    channel_key: str | None = None
    """The outbound key that pays where a client key names none."""
    prices: tuple[Price, ...] = ()
    """What the channel's models cost."""
    external: ExternalStore | None = None
    """Where the External Secrets operator finds values; then none of them reaches a resource of this program."""

    @classmethod
    def of(cls, settings: Settings, versions: tuple[KeyVersion, ...]) -> "ApiKeysArgs":
        """From the settings."""
        keys = settings.keys
        return cls(
            keys=keys.keys,
            versions=versions,
            agent=keys.agent,
            channel_key=settings.channel.key if settings.channel.enabled else None,
            prices=settings.channel_models.prices,
            external=ExternalStore.of(settings),
        )


@dataclass(frozen=True, kw_only=True)
class ApiKeysResources:
    """Secrets by key id and stage, the gateway's two, and whose requests may not go to the channel."""

    versions: Mapping[tuple[str, str], pulumi.CustomResource]
    client_keys: pulumi.CustomResource
    channel_keys: pulumi.CustomResource
    channel_gate: pulumi.CustomResource


class ApiKeys(pulumi.ComponentResource):
    """All keys of a stack. Names and fingerprints are plain, so that nothing that refers to a Secret turns secret itself."""

    resources: ApiKeysResources
    facts: list[dict[str, Any]]
    """What may be shown of each key: id, purpose, owner, stage, fingerprint, expires."""
    agent_config: AgentConfig
    """What the key agent is told of the keys."""

    def __init__(
        self, name: str, args: ApiKeysArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        self.facts = [_facts(_of(args.keys, version), version) for version in args.versions]
        super().__init__("moonstack:api_keys:ApiKeys", name, {"keys": self.facts}, opts)
        self._context = context
        self._external = args.external
        versions = [(v.id, names.key_version(v.id, v.fingerprint)) for v in args.versions]
        self.agent_config = AgentConfig.of(context.namespace, args.keys, versions, args.channel_key, args.prices)
        now = args.now or datetime.now(UTC)
        self.resources = ApiKeysResources(
            versions={(v.id, v.stage): self._create_version(_of(args.keys, v), v) for v in args.versions},
            client_keys=self._create_client_keys(args, now),
            channel_keys=self._create_channel_keys(args),
            channel_gate=self._create_channel_gate(args),
        )
        self.register_outputs({"keys": self.facts, "clientKeys": self.resources.client_keys.id})

    def _create_version(self, key: KeySettings, version: KeyVersion) -> pulumi.CustomResource:
        """Nothing mounts it: the key agent reads it by name, and a person finds the value there."""
        return self._create_secret(
            names.key_version(key.id, version.fingerprint),
            {"value": version},
            consumer=names.KEY_AGENT,
            immutable=True,
            labels={labels.KEY_ID: key.id, labels.PURPOSE: key.purpose, labels.KEY_STAGE: version.stage},
            annotations=_annotations(key, version),
        )

    def _create_client_keys(self, args: ApiKeysArgs, now: datetime) -> pulumi.CustomResource:
        keys = {key.id: key for key in args.keys if not key.outbound and key.valid_at(now)}
        versions = [version for version in args.versions if version.id in keys]
        text = pulumi.Output.secret(pulumi.Output.all(*[version.value for version in versions])).apply(
            lambda values: client_keys_file(ClientKey(v.id, value) for v, value in zip(versions, values, strict=True))
        )
        metadata = self._metadata(names.CLIENT_KEYS, names.GATEWAY, labels={labels.PURPOSE: "client"})
        nobody = pulumi.Output.from_input(client_keys_file([]))  # Envoy never opens a listener whose file was missing
        return self._declare(metadata, {FILE: nobody if args.external else text}, **_owned_by_agent(args))

    def _create_channel_keys(self, args: ApiKeysArgs) -> pulumi.CustomResource:
        """With each key's end beside the values: the agent takes an ended value away, and the operator renders it empty."""
        outbound = {key.id: key.expires for key in args.keys if key.outbound}
        current = {v.id: v for v in args.versions if v.id in outbound and v.stage == "current"}
        ends = key_ends(outbound.items()) if args.agent and not self._external else ""
        more: dict[str, Any] = {"annotations": {labels.KEY_ENDS: ends}} if ends else {}
        return self._create_secret(
            names.CHANNEL_KEYS,
            current,
            consumer=names.GATEWAY,
            labels={labels.PURPOSE: "channel"},
            ends=outbound,
            **more,
        )

    def _create_channel_gate(self, args: ApiKeysArgs) -> pulumi.CustomResource:
        """Open to begin with; nothing in it is secret."""
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self._context.metadata(names.CHANNEL_GATE, "keys"),
            "data": {channel_gate.FILE: channel_gate_file({})},
        }
        return declare(manifest, self, self._context, **_owned_by_agent(args))

    def _create_secret(
        self,
        name: str,
        versions: Mapping[str, KeyVersion],
        *,
        consumer: str,
        immutable: bool = False,
        ends: Mapping[str, datetime | None] | None = None,
        **more: Any,
    ) -> pulumi.CustomResource:
        """A Secret with one file a version, by the program or by the External Secrets operator."""
        metadata = self._metadata(name, consumer, **more)
        if self._external and versions:
            files: dict[str, tuple[str, Stage]] = {
                file: (version.id, version.stage) for file, version in versions.items()
            }
            refresh = ONCE if immutable else EVERY_MINUTE
            return declare(
                external_secret(self._external, metadata, files, refresh=refresh, ends=ends or {}), self, self._context
            )
        return self._declare(metadata, {file: version.value for file, version in versions.items()}, immutable=immutable)

    def _declare(
        self,
        metadata: Mapping[str, Any],
        files: Mapping[str, pulumi.Output[str]],
        *,
        immutable: bool = False,
        **options: Any,
    ) -> pulumi.CustomResource:
        """`data`, not `stringData`: a key that leaves stringData stays in the object (kubernetes/kubernetes#70281)."""
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            **({"immutable": True} if immutable else {}),
            # an empty `data` is dropped by the API server, and would be added by every update
            **({"data": {file: value.apply(_base64) for file, value in files.items()}} if files else {}),
        }
        return declare(manifest, self, self._context, **options)

    def _metadata(self, name: str, consumer: str, **more: Any) -> dict[str, Any]:
        own = {labels.ENVIRONMENT: self._context.environment, labels.CONSUMER: consumer}
        return self._context.metadata(name, "keys", **more | {"labels": own | more.get("labels", {})})


def _of(keys: Iterable[KeySettings], version: KeyVersion) -> KeySettings:
    return next(key for key in keys if key.id == version.id)


def _owned_by_agent(args: ApiKeysArgs) -> dict[str, Any]:
    """The program only begins what the key agent keeps."""
    return {"ignore_changes": ["data"]} if args.agent else {}


def _facts(key: KeySettings, version: KeyVersion) -> dict[str, Any]:
    expires = key.expires.isoformat() if key.expires else None
    return {
        "id": key.id,
        "purpose": key.purpose,
        "owner": key.owner,
        "stage": version.stage,
        "fingerprint": version.fingerprint,
        "expires": expires,
    }


def _annotations(key: KeySettings, version: KeyVersion) -> dict[str, str]:
    known = {
        labels.KEY_FINGERPRINT: version.fingerprint,
        labels.OWNER: key.owner,
        labels.NOT_BEFORE: key.not_before and key.not_before.isoformat(),
        labels.EXPIRES: key.expires and key.expires.isoformat(),
    }
    return {name: value for name, value in known.items() if value}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
