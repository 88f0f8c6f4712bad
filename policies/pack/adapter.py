"""From the engine's resources to the rules' objects, and back to its reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pulumi
from pulumi.runtime import config
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import Severity as EngineSeverity
from pulumi_policy.proxy import UnknownValueError

from policies.judge import violations
from policies.objects import Object
from policies.rule import CONCERNS, Concern, Enforcement, Facts, Rule, Violation
from policies.unknown import Unknown
from settings.errors import SettingsError
from settings.settings import NAMESPACE, Settings

_DERIVED: Final = frozenset({"status", "id", "__inputs", "__initialApiVersion", "__fieldManager"})
"""Top-level properties that the provider or the cluster adds."""
_DERIVED_METADATA: Final = frozenset(
    {"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "selfLink"}
)
_ORDER: Final = ("low", "medium", "high", "critical")


def policies(rules: Sequence[Rule]) -> list[Policy]:
    """One mandatory policy a concern and scope, and one that advises for all.

    Whether a rule is mandatory depends on the stack's environment, which the engine tells only with each request,
    while a policy's level is fixed. Each policy makes the SDK read all properties anew, so they are few.
    """
    grouped: dict[tuple[Concern, bool], list[Rule]] = {}
    for rule in rules:
        grouped.setdefault((rule.concern, rule.each is not None), []).append(rule)
    mandatory = [_mandatory(concern, alone, members) for (concern, alone), members in grouped.items()]
    return [*mandatory, _advice(rules)]


def _mandatory(concern: Concern, alone: bool, rules: list[Rule]) -> Policy:
    level = EnforcementLevel.MANDATORY
    severity = EngineSeverity(max((rule.severity for rule in rules), key=_ORDER.index))
    if alone:
        check = _each(rules, "mandatory")
        return ResourceValidationPolicy(concern, CONCERNS[concern], check, enforcement_level=level, severity=severity)
    check = _all(rules, "mandatory")
    name = f"{concern}-stack"
    return StackValidationPolicy(name, CONCERNS[concern], check, enforcement_level=level, severity=severity)


def _advice(rules: Sequence[Rule]) -> Policy:
    description = "What doesn't stop a deployment: rules relaxed in dev, warnings, and values unknown until up."
    check = _all(rules, "advisory")
    return StackValidationPolicy("advice", description, check, enforcement_level=EnforcementLevel.ADVISORY)


def _each(rules: Sequence[Rule], level: Enforcement) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        facts = stack_facts()
        for violation in _at(level, rules, [_object(args)], facts):
            report(_line(violation), None)

    return validate


def _all(rules: Sequence[Rule], level: Enforcement) -> Callable[[StackValidationArgs, ReportViolation], None]:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        facts = stack_facts()
        for violation in _at(level, rules, [_object(resource) for resource in args.resources], facts):
            report(_line(violation), violation.urn or None)

    return validate


def _at(level: Enforcement, rules: Sequence[Rule], objects: Sequence[Object], facts: Facts) -> Iterator[Violation]:
    yield from (one for rule in rules for one in violations(rule, objects, facts) if one.enforcement == level)


def _object(resource: Any) -> Object:
    body = plain(resource.props)
    kept = {key: value for key, value in body.items() if key not in _DERIVED}
    if isinstance(metadata := kept.get("metadata"), dict):
        kept["metadata"] = {key: value for key, value in metadata.items() if key not in _DERIVED_METADATA}
    return Object(
        kept, urn=resource.urn, type=resource.resource_type, ignored=tuple(resource.opts.ignore_changes or ())
    )


def plain(value: Any, path: str = "") -> Any:
    """The SDK's proxies as plain dicts and lists, with an `Unknown` where reading raises; the engine sends 8000 as 8000.0."""
    if isinstance(value, Mapping):
        return {key: _read(value, key, f"{path}.{key}" if path else str(key)) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_read(value, index, f"{path}[{index}]") for index in range(len(value))]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read(container: Any, key: Any, path: str) -> Any:
    try:
        return plain(container[key], path)
    except UnknownValueError:
        return Unknown(path)


def stack_facts() -> Facts:
    """The stack's own configuration; without a readable one (the program will say why), as strict as in prod."""
    return _facts(tuple(sorted(config.CONFIG.get().items())))


@lru_cache(maxsize=4)
def _facts(configured: tuple[tuple[str, str], ...]) -> Facts:
    """Read once a configuration, not once a resource: the SDK sets the same one for each request."""
    try:
        settings = Settings.load(pulumi.Config(NAMESPACE))
    except SettingsError:
        return Facts("prod")
    return Facts(settings.environment, settings)


def _line(violation: Violation) -> str:
    place = f"{violation.path}: " if violation.path else ""
    return f"{violation.rule}: {violation.object}: {place}{violation.message}"
