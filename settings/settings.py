"""The whole typed configuration of one stack."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from rules.problem import Problem
from settings.autoscaling import AutoscalingSettings
from settings.base import Group
from settings.channel import ChannelModelsSettings, ChannelSettings
from settings.checks import CHECKS
from settings.checks.keys import OF_THE_DAY
from settings.cluster import ClusterScope, ClusterSettings, Environment
from settings.errors import SettingsError, brief, from_pydantic
from settings.gateway import GatewaySettings
from settings.keys import KeysSettings
from settings.kthena import KthenaSettings
from settings.kv_store import KvStoreSettings
from settings.models import ModelSettings
from settings.network import NetworkSettings
from settings.node_pools import NodePoolSettings
from settings.observability import ObservabilitySettings
from settings.secret_values import KEY_VALUE_PREFIX, broken_values, clear_values, clear_values_in_engine, strange_values
from settings.smoke import SmokeSettings
from settings.stack_file import (
    NAMESPACE,
    UnreadableError,
    misplaced_keys,
    misspelt_keys,
    own,
    read_yaml,
    unquoted_texts,
)
from settings.warm_pool import WarmPoolSettings


class Settings(Group):
    """One stack's configuration: each field is one key of the namespace `moonstack:`."""

    environment: Environment
    """What the stack is for: it decides how strict the checks are."""
    cluster: ClusterSettings
    """Where the stack runs: cluster, namespace, images."""
    cluster_scope: ClusterScope = "own"
    """Whether this stack owns the cluster's custom metrics API (its APIService exists once a cluster) or uses another's."""
    node_pools: tuple[NodePoolSettings, ...]
    """Which nodes with which chips, a list."""
    models: tuple[ModelSettings, ...]
    """What is served, a list."""
    kv_store: KvStoreSettings = KvStoreSettings()
    kthena: KthenaSettings = KthenaSettings()
    gateway: GatewaySettings = GatewaySettings()
    channel: ChannelSettings = ChannelSettings()
    channel_models: ChannelModelsSettings = ChannelModelsSettings()
    keys: KeysSettings = KeysSettings()
    network: NetworkSettings = NetworkSettings()
    autoscaling: AutoscalingSettings = AutoscalingSettings()
    warm_pool: WarmPoolSettings = WarmPoolSettings()
    observability: ObservabilitySettings = ObservabilitySettings()
    smoke: SmokeSettings = SmokeSettings()
    smoke_skip: bool = False
    """Write "skipped" instead of proving this deployment: the next one without it proves. Refused in prod."""

    @property
    def needs_local_runtime(self) -> bool:
        """Whether the stack uses what `make up` builds: local images, the CPU engine, development models."""
        return self.cluster.images == "local" or any(
            model.engine.build == "cpu" or model.weights.source == "development" for model in self.models
        )

    @classmethod
    def load(cls, config: Any) -> Self:
        """The settings from a `pulumi.Config`, the only reader of it. Raises SettingsError with every problem at once."""
        configured = _configured_keys()
        wrong = [*misspelt_keys(sorted(configured), _group_names(cls)), *clear_values_in_engine(sorted(configured))]
        if wrong:
            raise SettingsError(wrong, "the stack configuration")
        values = {
            key: _decoded(config.get(key))
            for key in own(dict.fromkeys(configured))
            if not key.startswith(KEY_VALUE_PREFIX)
        }
        settings = cls.from_mapping(values, source="the stack configuration")
        if strangers := strange_values(sorted(configured), [key.id for key in settings.keys.keys]):
            raise SettingsError(strangers, "the stack configuration")
        return settings

    @classmethod
    def from_stack_file(cls, path: Path, *, as_deployed: bool = False) -> Self:
        """The settings from a Pulumi.<stack>.yaml, without Pulumi; `as_deployed` as in `from_mapping`. Raises SettingsError."""
        try:
            document = read_yaml(path)
        except FileNotFoundError:
            stacks = ", ".join(sorted(p.name for p in path.parent.glob("Pulumi.*.yaml"))) or "none"
            raise SettingsError(
                [Problem(path.name, None, "no such stack file", f"choose one of: {stacks}")], str(path)
            ) from None
        except UnreadableError as error:
            raise SettingsError(
                [Problem(path.name, None, f"cannot be read: {error}", "correct the file")], str(path)
            ) from None
        if not isinstance(document, dict | None):
            fix = "write the settings below config:, one key a line"
            raise SettingsError([Problem(path.name, brief(document), "must be a mapping with config:", fix)], str(path))
        document = document or {}
        config = document.get("config") or {}
        if not isinstance(config, dict):
            raise SettingsError(
                [Problem("config", brief(config), "must be a mapping", "write one key a line")], str(path)
            )
        config, values = {str(key): value for key, value in config.items()}, own(config)
        if found := [
            *misplaced_keys(document),
            *misspelt_keys(config, _group_names(cls)),
            *clear_values(config),
            *broken_values(document, config),
            *(each for key, value in values.items() for each in unquoted_texts(f"{NAMESPACE}:{key}", value)),
        ]:
            raise SettingsError(found, str(path))
        settings = cls.from_mapping(values, source=path.name, as_deployed=as_deployed)
        if strangers := strange_values(config, [key.id for key in settings.keys.keys]):
            raise SettingsError(strangers, path.name)
        return settings

    @classmethod
    def from_mapping(
        cls, values: Mapping[str, Any], source: str = "the configuration", *, as_deployed: bool = False
    ) -> Self:
        """The settings from plain values by group name; key values are ignored. Raises SettingsError.

        `as_deployed` is for whoever looks at a running stack: what has become wrong since, such as a key that ended, is let through.
        """
        groups = {key: value for key, value in values.items() if not key.startswith(KEY_VALUE_PREFIX)}
        problems = [*_unknown_groups(cls, groups), *_group_problems(cls, groups)]
        if problems:
            raise SettingsError(problems, source)
        settings = cls.model_validate(groups)
        checks = [check for check in CHECKS if not (as_deployed and check in OF_THE_DAY)]
        if found := [problem for check in checks for problem in check(settings)]:
            raise SettingsError([replace(problem, path=f"{NAMESPACE}:{problem.path}") for problem in found], source)
        return settings


def _configured_keys() -> set[str]:
    """Every key of the running program's configuration, with its namespace; `pulumi.Config` itself can't list."""
    from pulumi.runtime import config as runtime

    return {*runtime.CONFIG.get(), *runtime.get_config_env()}


def _decoded(value: str | None) -> Any:
    try:
        return json.loads(value) if value is not None else None
    except json.JSONDecodeError:
        return value


def _group_names(cls: type[Settings]) -> set[str]:
    return {field.alias or name for name, field in cls.model_fields.items()}


def _unknown_groups(cls: type[Settings], groups: Mapping[str, Any]) -> list[Problem]:
    known = _group_names(cls)
    return [
        Problem(f"{NAMESPACE}:{key}", "…", "is not a known key", f"remove it; known: {', '.join(sorted(known))}")
        for key in groups
        if key not in known
    ]


@cache
def _adapter(cls: type[Settings], name: str) -> TypeAdapter[Any]:
    """What validates one group alone; making it costs more than using it."""
    return TypeAdapter[Any](cls.model_fields[name].annotation or Any)


def _group_problems(cls: type[Settings], groups: Mapping[str, Any]) -> list[Problem]:
    """Each group alone, so that one broken group doesn't hide the problems of another."""
    problems: list[Problem] = []
    for name, field in cls.model_fields.items():
        key = field.alias or name
        if key not in groups:
            if field.is_required():
                problems.append(Problem(f"{NAMESPACE}:{key}", None, "is required", "add it to the stack file"))
            continue
        try:
            _adapter(cls, name).validate_python(groups[key])
        except ValidationError as error:
            problems += from_pydantic(error, f"{NAMESPACE}:{key}", field.annotation)
    return problems
