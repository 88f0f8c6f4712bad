"""What a rule is, what it is told of the stack, and what it answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from policies.objects import Object
from policies.unknown import Undecided
from settings.settings import Settings

Severity = Literal["low", "medium", "high", "critical"]
Enforcement = Literal["mandatory", "advisory"]
UNDECIDED = "a value is unknown until up; the rule runs again in up and on the exported state"
MISSHAPEN = "can't be judged: a field has a type that Kubernetes doesn't take, or is missing; compare with the API"
Concern = Literal["key-hygiene", "placement", "serving", "scaling", "network"]
CONCERNS: Final[Mapping[Concern, str]] = {
    "key-hygiene": "Keys stand in Secrets alone, reach only their consumer, and can be rotated.",
    "placement": "Pods ask for chips that exist, where they exist.",
    "serving": "Prefill, decode, routers and store fit together.",
    "scaling": "One owner of replicas, within chips and quotas, on metrics that exist.",
    "network": "One way in, nothing open beside it, and no right that isn't needed.",
}


@dataclass(frozen=True)
class Facts:
    """What rules may know beside the objects; without settings, rules that need them are silent."""

    environment: str
    settings: Settings | None = None


@dataclass(frozen=True)
class Finding:
    """One place where a rule is broken; the message names the fix and never a value that could be a key."""

    object: Object
    path: str
    message: str
    undecided: bool = False
    """True: not broken as far as is known; an unknown value keeps the rule from telling."""
    advice: bool = False
    """True: worth saying, and never a reason to stop."""


ObjectCheck = Callable[[Object, Facts], Iterable[Finding]]
StackCheck = Callable[[Sequence[Object], Facts], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: exactly one of `each` (an object alone) and `all` (objects among each other)."""

    id: str
    concern: Concern
    severity: Severity
    description: str
    each: ObjectCheck | None = None
    all: StackCheck | None = None
    reads_pods: bool = False
    """Judges pods: where a preview doesn't know one, or a container of it, the rule says so."""
    relaxed_in_dev: bool = False
    """Advisory in dev, where it would hinder development; mandatory elsewhere."""

    def enforcement(self, environment: str) -> Enforcement:
        """How a violation counts in an environment."""
        return "advisory" if self.relaxed_in_dev and environment == "dev" else "mandatory"


def guarded(findings: Iterable[Finding], about: Object) -> Iterator[Finding]:
    """What is found before an unknown value stays; the unknown value itself becomes a note about the object.

    An object of a shape that the API server would refuse is a finding too, never the end of the other rules.
    """
    try:
        yield from findings
    except Undecided as unknown:
        yield Finding(about, unknown.path, UNDECIDED, undecided=True)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        yield Finding(about, "", f"{MISSHAPEN} ({type(error).__name__})")


@dataclass(frozen=True)
class Violation:
    """A finding with its rule's weight, as reports show it."""

    rule: str
    severity: Severity
    enforcement: Enforcement
    object: str
    path: str
    message: str
    urn: str = ""
    source: str = ""
