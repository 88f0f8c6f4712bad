"""Models, their engines and their routers fit together: each check calls the rule and says where the configuration is wrong."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules import connectors, kv_transport, pd_group
from rules.chips import engine_chip
from rules.engine_flags import extra_args_are_free
from rules.problem import Problem
from rules.quantity import to_bytes
from settings.placed import placed

if TYPE_CHECKING:
    from settings.settings import Settings


def engines_suit_their_chips(settings: "Settings") -> list[Problem]:
    """Each placement asks for chips that exist, that its engine uses, and that hold the weights."""
    problems = []
    for index, model in enumerate(settings.models):
        for member in (each.member for each in placed(settings, index)):
            problems += [*pd_group.chip_serves(member), *pd_group.chips_per_pod_exist(member)]
            if model.engine.build == "chip":
                problems += pd_group.parallel_fits_the_chips(member)
                problems += pd_group.weights_fit_the_chips(member, to_bytes(model.weights.size))
    return problems


def groups_are_sound(settings: "Settings") -> list[Problem]:
    """Prefill and decode of a model can exchange KV."""
    problems = []
    for index, model in enumerate(settings.models):
        group = [each.member for each in placed(settings, index)]
        if model.shape != "pd" or not group:
            continue
        problems += pd_group.no_group_across_vendors(group)
        problems += pd_group.no_group_on_slices(group)
        if model.engine.build == "chip":
            problems += pd_group.prefill_is_a_multiple_of_decode(group, model.connector)
            problems += pd_group.one_size_a_role(group, model.connector)
    return problems


def connectors_fit(settings: "Settings") -> list[Problem]:
    """The connector exists for every chip of the model, the router speaks it, and the store it needs is there."""
    problems = []
    for index, model in enumerate(settings.models):
        path = f"models[{index}].connector"
        problems += connectors.router_speaks(path, model.connector, model.backend, model.shape)
        problems += connectors.alone_needs_no_peer(path, model.connector, model.shape)
        problems += connectors.store_is_there(path, model.connector, settings.kv_store.enabled)
        chips = {each.member.chip.id for each in placed(settings, index)}
        for chip in {chip.id: chip for chip in (engine_chip(name, model.engine.build) for name in chips)}.values():
            problems += connectors.chip_has(path, model.connector, chip)
            problems += pd_group.dtype_exists(f"models[{index}].engine.dtype", model.engine.dtype, chip)
            problems += pd_group.block_size_fits(f"models[{index}].engine.blockSize", model.engine.block_size, chip)
    return problems


def ports_are_free(settings: "Settings") -> list[Problem]:
    """A peer-to-peer connector's handshake ports meet no other part's."""
    problems = []
    for index, model in enumerate(settings.models):
        if not connectors.CONNECTORS[model.connector].peer_to_peer or model.kv_port is None:
            continue
        largest = max(placed(settings, index), key=lambda each: each.member.tensor_parallel, default=None)
        if largest is not None:
            member, host_chips = largest.member, largest.pool.chips_per_node
            path, span = f"models[{index}].kvPort", member.tensor_parallel
            problems += kv_transport.kv_port_is_free(path, model.kv_port, span, member.chip, host_chips)
    return problems


def flags_are_free(settings: "Settings") -> list[Problem]:
    """No extra engine argument contradicts the settings."""
    return [
        problem
        for index, model in enumerate(settings.models)
        for problem in extra_args_are_free(f"models[{index}].engine.extraArgs", model.engine.extra_args)
    ]


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    engines_suit_their_chips,
    groups_are_sound,
    connectors_fit,
    ports_are_free,
    flags_are_free,
)
