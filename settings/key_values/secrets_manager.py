"""Keys in AWS Secrets Manager: one secret a key, its versions marked by staging labels.

AWSCURRENT is in use, AWSPENDING is accepted already, and `MoonstackAccepted` marks a former version that is accepted still
(AWSPREVIOUS stays on a version for good, so it can't tell).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from rules.problem import Problem
from settings.errors import SettingsError
from settings.key_values import Stage, Versions

ACCEPTED: Final = "MoonstackAccepted"
LABELS: Final[Mapping[Stage, str]] = {"current": "AWSCURRENT", "next": "AWSPENDING", "previous": ACCEPTED}
_BATCH: Final = 20
"""BatchGetSecretValue takes at most 20 ids (AWS API reference)."""
_LIST_PAGE: Final = 100
_TIMEOUTS: Final = Config(connect_timeout=5, read_timeout=10, retries={"max_attempts": 3, "mode": "standard"})


def secret_name(environment: str, prefix: str, key_id: str) -> str:
    """The name of a key's secret: `<prefix><environment>/<id>`."""
    return f"{prefix}{environment}/{key_id}"


class SecretsManagerKeys:
    """Reads all keys of one environment; secrets are called `<prefix><environment>/<id>`."""

    def __init__(self, environment: str, prefix: str, region: str | None = None) -> None:
        self._folder = secret_name(environment, prefix, "")
        self._region = region
        self._client: Any = None

    def read(self, ids: Sequence[str]) -> Mapping[str, Versions]:
        """One batched read of the current values (20 a call), and one read for each version of a rotation under way.

        Raises SettingsError if Secrets Manager can't be reached or refuses.
        """
        try:
            client = self.client()
            found: dict[str, dict[Stage, str]] = {
                key_id: {"current": value} for key_id, value in self._current(client, ids)
            }
            for key_id, stage, version in self._rotating(client, found):
                found[key_id][stage] = client.get_secret_value(SecretId=self.name(key_id), VersionId=version)[
                    "SecretString"
                ]
        except (BotoCoreError, ClientError) as error:
            raise SettingsError([self._unreachable(error)], "the keys") from None
        return found

    def where(self, key_id: str) -> str:
        """The secret's name."""
        return f"Secrets Manager secret {self.name(key_id)}"

    def name(self, key_id: str) -> str:
        """The name of a key's secret."""
        return f"{self._folder}{key_id}"

    def client(self) -> Any:
        """One client for all calls, with timeouts short enough for a preview; making it costs more than a call."""
        if self._client is None:
            self._client = boto3.client("secretsmanager", region_name=self._region, config=_TIMEOUTS)
        return self._client

    def _current(self, client: Any, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        """A server that answers with another version (moto does, once a label has moved) is asked again by label."""
        for start in range(0, len(ids), _BATCH):
            names = [self.name(key_id) for key_id in ids[start : start + _BATCH]]
            answer = client.batch_get_secret_value(SecretIdList=names)
            for error in answer.get("Errors", []):
                if error["ErrorCode"] != "ResourceNotFoundException":
                    raise ClientError({"Error": {"Code": error["ErrorCode"], "Message": ""}}, "BatchGetSecretValue")
            for secret in answer["SecretValues"]:
                if LABELS["current"] not in secret.get("VersionStages", ()):
                    secret = client.get_secret_value(SecretId=secret["Name"], VersionStage=LABELS["current"])
                yield secret["Name"].removeprefix(self._folder), secret.get("SecretString", "")

    def _rotating(self, client: Any, found: Mapping[str, Any]) -> Iterator[tuple[str, Stage, str]]:
        pages = client.get_paginator("list_secrets").paginate(
            Filters=[{"Key": "name", "Values": [self._folder]}], PaginationConfig={"PageSize": _LIST_PAGE}
        )
        for secret in (secret for page in pages for secret in page["SecretList"]):
            key_id = secret["Name"].removeprefix(self._folder)
            if key_id not in found:
                continue
            for version, labels in secret.get("SecretVersionsToStages", {}).items():
                for stage in ("next", "previous"):
                    if LABELS[stage] in labels and LABELS["current"] not in labels:
                        yield key_id, stage, version

    def _unreachable(self, error: Exception) -> Problem:
        reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
        return Problem(
            "moonstack:keys.source",
            "secretsManager",
            f"Secrets Manager could not be read ({reason})",
            "check AWS credentials, region and network, and the right secretsmanager:BatchGetSecretValue",
        )
