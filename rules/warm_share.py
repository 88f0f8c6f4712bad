"""How warm pools of several models share the chips of one node pool."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One warm pool: chips a pod, the pods that it keeps in any case, the pods that it asks for, and how often it was needed."""

    name: str
    chips: int
    low: int
    wanted: int
    activations: int = 0


def shared(claims: Sequence[Claim], budget: int | None) -> dict[str, int]:
    """Pods of each claim within so many chips (None: no limit).

    Minimums first, whatever the budget. Then pod by pod to the claim with the most activations for each pod that it has so
    far; of equals the one declared first, so the same week gives the same sizes. A pod that is too large leaves its room to
    smaller ones.
    """
    given = {claim.name: min(claim.low, claim.wanted) for claim in claims}
    if budget is None:
        return {claim.name: claim.wanted for claim in claims}
    left = budget - sum(claim.chips * given[claim.name] for claim in claims)
    while True:
        fits = [claim for claim in claims if given[claim.name] < claim.wanted and claim.chips <= left]
        if not fits:
            return given
        neediest = max(fits, key=lambda claim: claim.activations / (given[claim.name] + 1))
        given[neediest.name] += 1
        left -= neediest.chips


def most_pods(claims: Sequence[Claim], budget: int) -> dict[str, int]:
    """The pods that take the most room on nodes within the budget: the largest first, after everybody's minimum."""
    given = {claim.name: claim.low for claim in claims}
    left = budget - sum(claim.chips * claim.low for claim in claims)
    for claim in sorted(claims, key=lambda claim: -claim.chips):
        more = max(0, min(claim.wanted - claim.low, left // claim.chips if claim.chips else claim.wanted))
        given[claim.name] += more
        left -= more * claim.chips
    return given
