"""Kubernetes resource quantities (k8s.io/apimachinery `resource.Quantity`) as numbers."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_SUFFIX: Final = {
    "": 1, "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)([numkMGTP]|[KMGTP]i)?")


def parse(text: str | int | float) -> Decimal:
    """The value of a quantity in its base unit (bytes, cores, pieces). Raises ValueError."""
    match = _QUANTITY.fullmatch(str(text))
    if not match:
        raise ValueError(f"{text!r} is not a Kubernetes quantity such as 500m, 3Gi or 8")
    return Decimal(match[1]) * Decimal(_SUFFIX[match[2] or ""])


def to_bytes(text: str | int | float) -> int:
    """A memory or disk quantity in bytes, rounded up. Raises ValueError."""
    return int(parse(text).to_integral_value(rounding="ROUND_CEILING"))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the largest quantity that makes sense for a purpose."""

    least: str
    most: str

    def fault(self, text: str) -> str | None:
        """What is wrong with a quantity and the fix, as `limit; fix`. Raises ValueError for what is none."""
        value = parse(text)
        if value < parse(self.least):
            return f"must be at least {self.least}; raise it"
        return f"must be at most {self.most}; lower it" if value > parse(self.most) else None


CPU: Final = Bounds("1m", "10000")
"""Kubernetes counts CPU in thousandths of a core."""
BYTES: Final = Bounds("1Mi", "1Pi")
"""Memory, disk and bytes a second: no container starts with less, and no node, model or link has more."""
