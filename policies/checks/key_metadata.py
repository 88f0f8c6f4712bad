"""A key's Secret says what it is for, for whom, where, and until when."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from policies.checks.secret_readers import declares_secret
from policies.objects import Object
from policies.rule import Facts, Finding, Rule, guarded
from policies.unknown import is_unknown, text
from rules import labels
from rules.key_ends import rotate_command
from settings.keys import OUTBOUND, Purpose

WARNING: Final = timedelta(days=14)
PURPOSES: Final = (*get_args(Purpose), "channel")
"""`channel` is the purpose of the Secret that bundles all outbound keys for the gateway."""


def says_what_it_is(one: Object, facts: Facts) -> Iterator[Finding]:
    """A key's Secret carries purpose, environment and consumer, and in prod its versions carry their expiry."""
    if not _holds_keys(one):
        return
    purpose = one.labels.get(labels.PURPOSE)
    if is_unknown(purpose):
        yield Finding(one, f'metadata.labels["{labels.PURPOSE}"]', "unknown until up", undecided=True)
    elif purpose not in PURPOSES:
        yield Finding(one, f'metadata.labels["{labels.PURPOSE}"]', f"must be one of: {', '.join(PURPOSES)}")
    for label in (labels.ENVIRONMENT, labels.CONSUMER):
        if label not in one.labels:
            yield Finding(one, f'metadata.labels["{label}"]', "is missing; say where the key belongs and who reads it")
    if labels.KEY_ID in one.labels and labels.EXPIRES not in one.annotations and facts.environment == "prod":
        yield Finding(one, f'metadata.annotations["{labels.EXPIRES}"]', "is missing; every key of prod ends some day")


def expires_in_time(one: Object, facts: Facts) -> Iterator[Finding]:
    """A key that ends within 14 days is announced; one that has ended is refused."""
    if not declares_secret(one) or labels.EXPIRES not in one.annotations:
        return
    path, key_id = f'metadata.annotations["{labels.EXPIRES}"]', text(one.labels.get(labels.KEY_ID)) or one.name
    try:
        end = datetime.fromisoformat(text(one.annotations[labels.EXPIRES]))
    except ValueError:
        yield Finding(one, path, "is no ISO 8601 time")
        return
    outbound = text(one.labels.get(labels.PURPOSE)) in OUTBOUND
    command = rotate_command(facts.environment or "…", key_id, outbound=outbound)
    left = (end if end.tzinfo else end.replace(tzinfo=UTC)) - datetime.now(UTC)
    if left <= timedelta(0):
        yield Finding(one, path, f"key {key_id} has expired; {command}")
    elif left <= WARNING:
        yield Finding(one, path, f"key {key_id} expires in {left.days} days; {command}", advice=True)


def environments_agree(objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    """The environment of Secret, namespace and stack is one (A7)."""
    namespaces: dict[str, Object] = {}
    for one in objects:
        if one.kind == "Namespace":
            yield from guarded(_namespace(one, namespaces), one)
    for one in objects:
        if one.kind == "Namespace" or declares_secret(one):
            yield from guarded(_disagreement(one, namespaces, facts), one)


def _namespace(one: Object, namespaces: dict[str, Object]) -> Iterator[Finding]:
    if labels.ENVIRONMENT in one.labels:
        namespaces[one.name] = one
    yield from ()


def _disagreement(one: Object, namespaces: Mapping[str, Object], facts: Facts) -> Iterator[Finding]:
    if labels.ENVIRONMENT not in one.labels:
        return
    own = text(one.labels[labels.ENVIRONMENT])
    path = f'metadata.labels["{labels.ENVIRONMENT}"]'
    if facts.settings is not None and own != facts.environment:
        yield Finding(
            one, path, f"is {own} in a stack of environment {facts.environment}; use a key of {facts.environment}"
        )
    namespace = namespaces.get(one.namespace)
    if namespace is not None and (theirs := text(namespace.labels[labels.ENVIRONMENT])) != own:
        yield Finding(one, path, f"is {own} in namespace {namespace.name} of environment {theirs}")


def _holds_keys(one: Object) -> bool:
    return declares_secret(one) and bool({labels.KEY_ID, labels.PURPOSE, labels.KEY_STAGE} & set(one.labels))


RULES: Final = (
    Rule(
        id="key-metadata",
        concern="key-hygiene",
        severity="high",
        description="A key's Secret carries purpose, environment, consumer, and in prod the key's end.",
        each=says_what_it_is,
    ),
    Rule(
        id="key-expiry",
        concern="key-hygiene",
        severity="high",
        description="No key has expired; one that expires within 14 days is announced.",
        each=expires_in_time,
    ),
    Rule(
        id="key-environment",
        concern="key-hygiene",
        severity="critical",
        description="The environment of a key, its namespace and the stack is one.",
        all=environments_agree,
    ),
)
