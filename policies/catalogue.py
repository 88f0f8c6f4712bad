"""All rules. A rule that is not here does not run."""

from typing import Final

from policies.checks import key_delivery, key_text, replicas
from policies.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *key_text.RULES,
    *key_delivery.RULES,
    *replicas.RULES,
)
