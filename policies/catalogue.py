"""All rules. A rule that is not here does not run."""

from typing import Final

from policies.checks import (
    boundary,
    chips,
    envoy,
    exposure,
    key_consumers,
    key_delivery,
    key_metadata,
    key_text,
    pods,
    replicas,
    rights,
    scaling,
    selectors,
    serving,
)
from policies.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *key_text.RULES,
    *key_delivery.RULES,
    *key_consumers.RULES,
    *key_metadata.RULES,
    *chips.RULES,
    *selectors.RULES,
    *serving.RULES,
    *replicas.RULES,
    *scaling.RULES,
    *exposure.RULES,
    *boundary.RULES,
    *rights.RULES,
    *pods.RULES,
    *envoy.RULES,
)
