"""Stores that a rotation writes to, one for each source of keys. A value never stands in an argument of a process."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rotation.run import RotationError, Store
from settings.key_values import STAGES, Stage, Versions
from settings.key_values.local import LocalKeys
from settings.key_values.secrets_manager import ACCEPTED, LABELS, SecretsManagerKeys
from settings.key_values.stack_config import config_key
from settings.settings import NAMESPACE, Settings


def store_of(settings: Settings, pulumi: Sequence[str]) -> Store:
    """The store of a stack's keys; `pulumi` is the command that runs Pulumi on the stack. Raises RotationError for placeholders."""
    match settings.keys.source:
        case "local":
            return LocalStore()
        case "secretsManager":
            return SecretsManagerStore(settings.environment, settings.keys.secrets_prefix, settings.keys.region)
        case "config":
            return ConfigStore(pulumi)
        case source:
            raise RotationError(f"moonstack:keys.source is {source}: there is nothing to rotate")


class LocalStore(LocalKeys):
    """Files of the state directory."""

    def promote(self, key_id: str) -> None:
        """Three steps, each of which may be the last one before a kill: the next run does the rest."""
        _promote(self, key_id)

    def changed(self, key_id: str) -> datetime | None:
        """When the previous version became that."""
        path = self.path(key_id, "previous")
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.exists() else None


class ConfigStore:
    """Encrypted stack configuration, by the Pulumi command line; the user commits the changed stack file."""

    def __init__(self, pulumi: Sequence[str]) -> None:
        self._pulumi = tuple(pulumi)

    def read(self, ids: Sequence[str]) -> Mapping[str, Versions]:
        """The versions of each key that is configured."""
        shown = json.loads(self._run("config", "--json", "--show-secrets"))
        values = {name: entry.get("value") for name, entry in shown.items()}
        found: dict[str, Versions] = {key_id: self._staged(values, key_id) for key_id in ids}
        return {key_id: versions for key_id, versions in found.items() if versions}

    def put(self, key_id: str, stage: Stage, value: str) -> None:
        """`pulumi config set --secret`, the value from stdin."""
        self._run("config", "set", "--secret", f"{NAMESPACE}:{config_key(key_id, stage)}", stdin=value)

    def drop(self, key_id: str, stage: Stage) -> None:
        """`pulumi config rm`."""
        self._run("config", "rm", f"{NAMESPACE}:{config_key(key_id, stage)}")

    def promote(self, key_id: str) -> None:
        """As in the other stores."""
        _promote(self, key_id)

    def changed(self, key_id: str) -> datetime | None:
        """Not known: the age of the new version in the cluster stands for it."""
        return None

    def _staged(self, values: Mapping[str, str], key_id: str) -> Versions:
        names: dict[Stage, str] = {stage: f"{NAMESPACE}:{config_key(key_id, stage)}" for stage in STAGES}
        return {stage: values[name] for stage, name in names.items() if name in values}

    def _run(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run([*self._pulumi, *arguments], input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RotationError(f"pulumi {' '.join(arguments[:2])} ended with exit {done.returncode}")
        return done.stdout


class SecretsManagerStore(SecretsManagerKeys):
    """Versions of a secret, told apart by staging labels; moving a label is atomic."""

    def put(self, key_id: str, stage: Stage, value: str) -> None:
        """A new version with the stage's label."""
        self.client().put_secret_value(SecretId=self.name(key_id), SecretString=value, VersionStages=[LABELS[stage]])

    def promote(self, key_id: str) -> None:
        """Mark the current version as accepted still, then move AWSCURRENT to the pending one."""
        client, labels = self.client(), self._versions(key_id)
        current, pending = labels.get(LABELS["current"]), labels.get(LABELS["next"])
        if pending is None:
            return
        if current and current != pending:
            self._move(client, key_id, ACCEPTED, to=current, source=labels.get(ACCEPTED))
            self._move(client, key_id, LABELS["current"], to=pending, source=current)
        self._move(client, key_id, LABELS["next"], source=pending)

    def drop(self, key_id: str, stage: Stage) -> None:
        """Take the stage's label away."""
        if version := self._versions(key_id).get(LABELS[stage]):
            self._move(self.client(), key_id, LABELS[stage], source=version)

    def changed(self, key_id: str) -> datetime | None:
        """When a label of the secret was moved last."""
        return self.client().describe_secret(SecretId=self.name(key_id)).get("LastChangedDate")

    def _versions(self, key_id: str) -> dict[str, str]:
        found = self.client().describe_secret(SecretId=self.name(key_id)).get("VersionIdsToStages", {})
        return {label: version for version, labels in found.items() for label in labels}

    def _move(self, client: Any, key_id: str, label: str, *, to: str | None = None, source: str | None = None) -> None:
        if to == source:
            return
        ends = {"MoveToVersionId": to, "RemoveFromVersionId": source}
        given = {name: version for name, version in ends.items() if version}
        client.update_secret_version_stage(SecretId=self.name(key_id), VersionStage=label, **given)


def _promote(store: LocalStore | ConfigStore, key_id: str) -> None:
    versions = store.read([key_id]).get(key_id, {})
    if "next" not in versions:
        return
    if versions.get("current") not in (None, versions["next"]):
        store.put(key_id, "previous", versions["current"])
        store.put(key_id, "current", versions["next"])
    store.drop(key_id, "next")
