"""The list of rules in the documentation is the catalogue's."""

from pathlib import Path

from policies.catalogue import RULES
from policies.shape import SHAPE_RULE
from policies.state import STATE_RULE

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def test_every_rule_is_documented_as_it_is():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `") and line.count("|") == 6]
    expected = [
        f"| `{r.id}` | {r.concern} | {r.severity} | {'advises' if r.relaxed_in_dev else 'stops'} | {r.description} |"
        for r in (*RULES, SHAPE_RULE, STATE_RULE)
    ]
    assert rows == expected
