"""Pools, chips and roles fit together."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules.chips import CHIPS
from rules.placement import Demand, over_capacity
from rules.problem import Problem, duplicates
from rules.quantity import parse
from settings.capacity_plan import role_plans

if TYPE_CHECKING:
    from settings.settings import Settings


def names_are_unique(settings: "Settings") -> list[Problem]:
    """Pool and model names identify objects, so each occurs once."""
    return [
        *duplicates("nodePools", [pool.name for pool in settings.node_pools], "pool"),
        *duplicates("models", [model.name for model in settings.models], "model"),
    ]


def chips_are_known(settings: "Settings") -> list[Problem]:
    """Each pool names a chip of the catalogue, a driver stack of that chip and an architecture it exists for."""
    problems = []
    for index, pool in enumerate(settings.node_pools):
        path = f"nodePools[{index}]"
        chip = CHIPS.get(pool.chip)
        if chip is None:
            problems.append(
                Problem(f"{path}.chip", pool.chip, "is not in the catalogue", f"choose one of: {', '.join(CHIPS)}")
            )
            continue
        if chip.stack(pool.driver_stack) is None:
            names = ", ".join(stack.name for stack in chip.stacks)
            problems.append(
                Problem(
                    f"{path}.driverStack",
                    pool.driver_stack,
                    f"{chip.title} has no such driver stack",
                    f"choose one of: {names}",
                )
            )
        if pool.arch not in chip.architectures:
            known = ", ".join(chip.architectures)
            problems.append(
                Problem(f"{path}.arch", pool.arch, f"{chip.title} hosts are {known}", "correct the architecture")
            )
        if pool.mode == "karpenter" and pool.node_class_ref is None:
            fix = "name it: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, or use mode existing"
            problems.append(Problem(f"{path}.nodeClassRef", None, "mode karpenter needs its node class", fix))
        if pool.mode == "labels" and not pool.nodes:
            problems.append(
                Problem(f"{path}.nodes", None, "mode labels needs the nodes' names", "list them, or use mode existing")
            )
    return problems


def rdma_is_no_chip(settings: "Settings") -> list[Problem]:
    """A pool's RDMA resource is none of chips: a pod asks for one of it, which would take the place of its number of chips."""
    chips = {stack.resource: chip.title for chip in CHIPS.values() for stack in chip.stacks if stack.resource}
    return [
        Problem(
            f"nodePools[{index}].rdmaResource",
            pool.rdma_resource,
            f"is the resource of {chips[pool.rdma_resource]}",
            "name the one of the RDMA device plugin, such as rdma/hca_shared_devices_a, or leave it out",
        )
        for index, pool in enumerate(settings.node_pools)
        if pool.rdma_resource in chips
    ]


def roles_have_pools(settings: "Settings") -> list[Problem]:
    """Each role is placed on a declared pool."""
    pools = {pool.name for pool in settings.node_pools}
    return [
        Problem(
            f"{path}.pool",
            role.pool,
            "is not a declared pool",
            f"choose one of: {', '.join(sorted(pools)) or 'none declared'}",
        )
        for path, _, role in _roles(settings)
        if role.pool not in pools
    ]


def chips_exist(settings: "Settings") -> list[Problem]:
    """No pool is asked for more chips than it has."""
    demands = [
        Demand(f"{plan.path}.chips", plan.placement.pool, plan.declared, plan.placement.chips)
        for plan in role_plans(settings)
    ]
    return [
        problem
        for pool in settings.node_pools
        for problem in over_capacity(demands, pool.name, len(pool.nodes) or pool.count, pool.chips_per_node)
    ]


def pods_fit_a_node(settings: "Settings") -> list[Problem]:
    """No pod requests more CPU or memory than one node of its pool has."""
    pools = {pool.name: (index, pool) for index, pool in enumerate(settings.node_pools)}
    return [
        Problem(
            f"{path}.{name}",
            wanted,
            f"is more than a node of pool {role.pool} has ({there})",
            f"lower it, or correct nodePools[{pools[role.pool][0]}].{name}",
        )
        for path, _, role in _roles(settings)
        if role.pool in pools
        for name in ("cpu", "memory")
        if parse(wanted := getattr(role, name)) > parse(there := getattr(pools[role.pool][1], name))
    ]


def _roles(settings: "Settings"):
    for index, model in enumerate(settings.models):
        for name, placements in model.roles().items():
            for position, role in enumerate(placements):
                yield f"models[{index}].{name}[{position}]", model, role


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    names_are_unique,
    chips_are_known,
    rdma_is_no_chip,
    roles_have_pools,
    chips_exist,
    pods_fit_a_node,
)
