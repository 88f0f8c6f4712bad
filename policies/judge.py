"""Runs rules over objects; an unknown value never switches a rule off for the rest."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from policies.objects import Object
from policies.rule import UNDECIDED, Facts, Finding, Rule, Violation, guarded


def judge(rules: Iterable[Rule], objects: Sequence[Object], facts: Facts) -> list[Violation]:
    """All violations, the gravest first."""
    found = [violation for rule in rules for violation in violations(rule, objects, facts)]
    return sorted(found, key=_weight)


def violations(rule: Rule, objects: Sequence[Object], facts: Facts) -> Iterator[Violation]:
    """What one rule says; where it can't tell because of an unknown value, an advisory note."""
    for finding in _findings(rule, objects, facts):
        enforcement = "advisory" if finding.undecided or finding.advice else rule.enforcement(facts.environment)
        yield Violation(
            rule.id,
            rule.severity,
            enforcement,
            finding.object.ref,
            finding.path,
            finding.message,
            finding.object.urn,
            finding.object.source,
        )


def _findings(rule: Rule, objects: Sequence[Object], facts: Facts) -> Iterator[Finding]:
    each, whole = rule.each, rule.all
    if each is not None:
        yield from chain.from_iterable(guarded(each(one, facts), one) for one in objects)
    if whole is not None:
        yield from guarded(whole(objects, facts), Object({}, type="stack"))
    if rule.reads_pods:
        yield from (Finding(one, path, UNDECIDED, undecided=True) for one in objects for path in one.unknown_pods)


def _weight(violation: Violation) -> tuple[int, int, str, str]:
    severities = ("critical", "high", "medium", "low")
    return (violation.enforcement == "advisory", severities.index(violation.severity), violation.rule, violation.object)
