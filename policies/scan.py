"""The pack's rules over files, without the engine."""

from collections.abc import Sequence

from policies.catalogue import RULES
from policies.checks.key_text import RULES as KEY_TEXT
from policies.judge import judge
from policies.objects import Object
from policies.rule import Facts, Violation
from policies.shape import SHAPE_RULE
from policies.state import OUTPUTS, STATE_RULE


def scan(objects: Sequence[Object], facts: Facts) -> list[Violation]:
    """All violations. Outputs in a state are searched for keys only: the other rules judge what was declared."""
    declared = [one for one in objects if not one.source.endswith((f" {OUTPUTS}", " rest"))]
    known = [one for one in objects if one.source.endswith((f" {OUTPUTS}", " rest"))]
    found = [
        *judge([SHAPE_RULE], declared, facts),
        *judge(RULES, declared, facts),
        *judge(KEY_TEXT, known, facts),
        *judge([STATE_RULE], objects, facts),
    ]
    return list(dict.fromkeys(found))


def failed(violations: Sequence[Violation]) -> bool:
    """Whether a mandatory rule is broken."""
    return any(violation.enforcement == "mandatory" for violation in violations)
