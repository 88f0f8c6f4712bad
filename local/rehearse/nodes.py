"""Simulated nodes of the shape that the stack's pools declare, and one general pool for everything without chips."""

from typing import Final

from local.cluster.addons.kwok import SimulatedPool
from rules.chips import CHIPS, DriverStack
from settings.node_pools import NodePoolSettings
from settings.settings import Settings

PREFIX: Final = "rehearsal-"
GENERAL: Final = SimulatedPool(name=f"{PREFIX}general", count=6, cpu="64", memory="256Gi", pods=250)
_ANY_VALUE: Final = "true"


def simulated_pools(settings: Settings) -> list[SimulatedPool]:
    """One simulated pool for each pool of the stack, and the general one."""
    return [GENERAL, *(simulated(pool) for pool in settings.node_pools)]


def simulated(pool: NodePoolSettings) -> SimulatedPool:
    """Nodes with the chips, labels, taints and sizes that the pool's settings say."""
    stack = driver_stack(pool)
    found = {label: values[0] if values else _ANY_VALUE for label, values in stack.required_labels.items()}
    domains = {pool.topology_key: pool.name} if pool.topology_key else {}
    return SimulatedPool(
        name=PREFIX + pool.name,
        count=pool.size,
        labels={**found, **domains, **pool.node_labels()},
        chips={stack.resource: pool.chips_per_node} if stack.resource else {},
        architecture=pool.arch,
        taints=tuple(each.taint() for each in pool.tolerations),
        cpu=pool.cpu,
        memory=pool.memory,
    )


def driver_stack(pool: NodePoolSettings) -> DriverStack:
    """The pool's driver stack; settings validation has made sure that it exists."""
    stack = CHIPS[pool.chip].stack(pool.driver_stack)
    assert stack is not None
    return stack
