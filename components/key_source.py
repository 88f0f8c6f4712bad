"""Key values for the program: read once, checked, and wrapped as secrets before anything else sees them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from rules.fingerprint import fingerprint
from rules.problem import Problem
from settings import key_lock
from settings.errors import SettingsError
from settings.key_values import KeyReader, Stage, Versions, checked
from settings.key_values.local import LocalKeys
from settings.key_values.placeholder import PlaceholderKeys
from settings.key_values.stack_config import StackConfigKeys
from settings.settings import Settings

OFFLINE = "MOONSTACK_OFFLINE"
"""Set to 1 by the verbs that serve nobody (render, rehearse): only there may an `up` use placeholders."""


@dataclass(frozen=True, kw_only=True)
class KeyVersion:
    """One version of a key: its value is a secret output, its fingerprint is plain."""

    id: str
    stage: Stage
    value: pulumi.Output[str]
    fingerprint: str


def key_versions(settings: Settings, config: pulumi.Config) -> tuple[KeyVersion, ...]:
    """Every version of every declared key, in the order of their declaration.

    A value that two stages of a key hold (a rotation that was cut short) is one version, of the earlier stage.
    Raises SettingsError if the source is unreachable, a key is missing or malformed, two keys have one value,
    or placeholders would be deployed.
    """
    found = [
        KeyVersion(id=key.id, stage=stage, value=pulumi.Output.secret(value), fingerprint=fingerprint(value))
        for key, versions in zip(settings.keys.keys, _read(settings, config), strict=True)
        for stage, value in versions.items()
    ]
    _refuse_shared_values(found)
    _compare_with_the_lock(settings, found)
    distinct: dict[tuple[str, str], KeyVersion] = {}
    for version in found:
        distinct.setdefault((version.id, version.fingerprint), version)
    return tuple(distinct.values())


def key_values(settings: Settings, config: pulumi.Config) -> dict[str, pulumi.Output[str]]:
    """The current value of each key by id, as secret outputs; raises as `key_versions`."""
    return {version.id: version.value for version in key_versions(settings, config) if version.stage == "current"}


def _read(settings: Settings, config: pulumi.Config) -> list[Versions]:
    keys = settings.keys.keys
    found: Mapping[str, Versions]
    if settings.keys.source == "placeholder":
        _refuse_to_deploy_placeholders()
        found = PlaceholderKeys().read([key.id for key in keys])
    else:
        found = checked(_reader(settings, config), keys)
    return [found[key.id] for key in keys]


def _reader(settings: Settings, config: pulumi.Config) -> KeyReader:
    match settings.keys.source:
        case "secretsManager":
            from settings.key_values.secrets_manager import SecretsManagerKeys

            return SecretsManagerKeys(settings.environment, settings.keys.secrets_prefix, settings.keys.region)
        case "local":
            return LocalKeys()
        case _:
            return StackConfigKeys(config)


def _refuse_to_deploy_placeholders() -> None:
    if not pulumi.runtime.is_dry_run() and os.environ.get(OFFLINE) != "1":
        problem = Problem(
            "moonstack:keys.source", "placeholder", "placeholders are for previews", "use secretsManager or config"
        )
        raise SettingsError([problem], "the keys")


def _compare_with_the_lock(settings: Settings, versions: list[KeyVersion]) -> None:
    """Placeholders are nobody's keys, so then only the lock itself is checked."""
    lock = key_lock.load()
    if settings.keys.source == "placeholder":
        return
    if problems := key_lock.problems(settings, [(version.id, version.fingerprint) for version in versions], lock):
        raise SettingsError(problems, key_lock.FILE)


def _refuse_shared_values(versions: list[KeyVersion]) -> None:
    owners: dict[str, str] = {}
    problems = [
        Problem(
            f"moonstack:keys.{version.id}",
            f"fingerprint {version.fingerprint[:8]}",
            f"is the value of key {owner} too",
            "give every key its own value",
        )
        for version in versions
        if (owner := owners.setdefault(version.fingerprint, version.id)) != version.id
    ]
    if problems:
        raise SettingsError(problems, "the keys")
