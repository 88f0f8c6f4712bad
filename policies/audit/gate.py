"""The gate of prod: a deployment doesn't count as done while the state holds a key in clear text."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pulumi

from policies.audit.run import Audit, audit
from policies.audit.search import Canaries
from policies.audit.state import places
from settings.settings import Settings

Proof = TypeVar("Proof")
_SHOWN = 10


def with_clean_state(
    prove: Callable[[str], Awaitable[Proof]], settings: Settings, stack: str
) -> Callable[[str], Awaitable[Proof]]:
    """The proof, in prod only after a scan of the backend's state, backups and history without a finding.

    The returned function raises pulumi.RunError that names where the keys are. A backend that can't be read is a warning.
    """
    if settings.environment != "prod":
        return prove

    async def proven(release: str) -> Proof:
        result = await asyncio.to_thread(scan_state, stack)
        if result.sightings:
            raise pulumi.RunError(refusal(result, stack))
        for one in result.looked:
            if one.unread:
                pulumi.log.warn(f"{one.place} was not searched for keys: {one.unread}")
        return await prove(release)

    return proven


def scan_state(stack: str) -> Audit:
    """What `audit` says of the ambient backend."""
    return audit(places(os.environ.get("PULUMI_BACKEND_URL", ""), stack), Canaries())


def refusal(result: Audit, stack: str) -> str:
    """The gate's message: where, what, and what to do; never a value."""
    lines = [f"  {one.place}: {one.where}: {one.path}: {one.kind}" for one in result.sightings[:_SHOWN]]
    more = len(result.sightings) - len(lines)
    return "\n".join(
        [
            f"{stack}'s state holds {len(result.sightings)} key(s) in clear text:",
            *lines,
            *([f"  and {more} more"] if more > 0 else []),
            f"rotate them, wrap them in pulumi.Output.secret, remove old backups; all of it: python -m policies audit --stack {stack}",
        ]
    )
