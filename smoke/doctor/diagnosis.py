"""A diagnosis: how a fault shows in the facts, and what is known about it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from smoke.doctor.facts import Facts

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a diagnosis applies: the object, and what was seen there."""

    object: str
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One row of the catalogue; the runbooks are generated from it."""

    id: str
    title: str
    severity: Severity
    cause: str
    fix: str
    look: str
    """A command that shows the fault; NS stands for the namespace."""
    source: str
    """Where this fault is known from."""
    detect: Callable[[Facts], Iterable[Hit]]


class Finding(BaseModel):
    """One line for the user."""

    model_config = ConfigDict(frozen=True)

    id: str
    severity: Severity
    object: str
    cause: str
    fix: str


def findings(catalogue: Iterable[Diagnosis], facts: Facts) -> list[Finding]:
    """Every hit of every diagnosis, errors first."""
    found = [
        Finding(id=d.id, severity=d.severity, object=hit.object, cause=f"{d.cause}: {hit.seen}", fix=d.fix)
        for d in catalogue
        for hit in d.detect(facts)
    ]
    return sorted(found, key=lambda one: ("error", "warning", "info").index(one.severity))
