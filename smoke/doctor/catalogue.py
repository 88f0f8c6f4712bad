"""Every diagnosis, in the order of the runbooks."""

from typing import Final

from smoke.doctor import cluster_wide, gateway, kthena, pods, scaling, store
from smoke.doctor.diagnosis import Diagnosis

CATALOGUE: Final[tuple[Diagnosis, ...]] = (
    *gateway.CATALOGUE,
    *scaling.CATALOGUE,
    *kthena.CATALOGUE,
    *pods.CATALOGUE,
    *store.CATALOGUE,
    *cluster_wide.CATALOGUE,
)


def runbooks() -> str:
    """docs/runbooks.md: one section a diagnosis."""
    parts = [
        "# Runbooks",
        "",
        "Generated from the doctor's catalogue (`python -m smoke runbooks`). `python -m smoke doctor --stack STACK` finds each of",
        "these on a live stack. NS is the stack's namespace.",
    ]
    for one in CATALOGUE:
        parts += [
            "",
            f"## {one.id}",
            "",
            f"**{one.title}** ({one.severity}; known from: {one.source})",
            "",
            f"- Cause: {one.cause}.",
            f"- Look: `{one.look}`",
            f"- Fix: {one.fix}.",
        ]
    return "\n".join(parts)
