"""A model's placements together with their pools and chips, for the checks that need all three."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rules.chips import CHIPS
from rules.pd_group import Member

if TYPE_CHECKING:
    from settings.models import RoleSettings
    from settings.node_pools import NodePoolSettings
    from settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Placed:
    """One placement of a role; `member` is the same as the rules see it."""

    placement: "RoleSettings"
    pool: "NodePoolSettings"
    member: Member


def placed(settings: "Settings", index: int) -> Iterator[Placed]:
    """Model `index`'s placements; those on unknown pools or chips are left to the placement checks."""
    pools = {pool.name: pool for pool in settings.node_pools}
    for role, placements in settings.models[index].roles().items():
        for position, placement in enumerate(placements):
            pool = pools.get(placement.pool)
            chip = CHIPS.get(pool.chip) if pool else None
            stack = chip.stack(pool.driver_stack) if pool and chip else None
            if pool is None or chip is None or stack is None:
                continue
            member = Member(
                path=f"models[{index}].{role}[{position}]",
                role=role,
                chip=chip,
                stack=stack,
                arch=pool.arch,
                chips=placement.chips,
                nodes=placement.nodes,
                tensor_parallel=placement.tensor_parallel or max(1, placement.chips * placement.nodes),
            )
            yield Placed(placement, pool, member)
