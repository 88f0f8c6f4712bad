"""What backend kthena takes and backend native doesn't, and the other way round."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules import kthena
from rules.problem import Problem
from settings.kthena import RouteSettings

if TYPE_CHECKING:
    from settings.models import ModelSettings
    from settings.settings import Settings


def kthena_takes_the_model(settings: "Settings") -> list[Problem]:
    """Names, roles and routes of backend kthena; and nothing of it in backend native."""
    problems = []
    on_kthena = {model.name for model in settings.models if model.backend == "kthena"}
    for index, model in enumerate(settings.models):
        path = f"models[{index}]"
        problems += _native_only(path, model) if model.backend == "native" else _kthena_only(path, model)
        for position, target in enumerate(model.route.targets):
            if target.model not in on_kthena or target.model == model.name:
                known = ", ".join(sorted(on_kthena - {model.name})) or "none"
                where = f"{path}.route.targets[{position}].model"
                problems.append(
                    Problem(where, target.model, "is no other model of backend kthena", f"choose one of: {known}")
                )
        if model.route.weight == 0 and not any(target.weight for target in model.route.targets):
            problems.append(
                Problem(f"{path}.route.weight", 0, "all weights are zero: no request goes anywhere", "raise one")
            )
    return problems


def _native_only(path: str, model: "ModelSettings") -> list[Problem]:
    problems = []
    if model.groups != 1:
        problems.append(
            Problem(f"{path}.groups", model.groups, "serving groups are Kthena's", "raise the roles' replicas instead")
        )
    if model.route != RouteSettings():
        problems.append(
            Problem(f"{path}.route", "…", "is for Kthena's router", "remove it, or set keys' limits at the gateway")
        )
    for role, placements in model.roles().items():
        for position, placement in enumerate(placements):
            if placement.nodes > 1:
                problems.append(
                    Problem(
                        f"{path}.{role}[{position}].nodes",
                        placement.nodes,
                        "a Deployment can't start several pods as one engine",
                        "use backend kthena, or fewer chips",
                    )
                )
    return problems


def _kthena_only(path: str, model: "ModelSettings") -> list[Problem]:
    problems = []
    for role, placements in model.roles().items():
        if len(placements) > 1:
            problems.append(
                Problem(
                    f"{path}.{role}",
                    f"{len(placements)} placements",
                    "a role of a ModelServing has one pod template",
                    "use backend native, or a second model with route.targets",
                )
            )
        for position, placement in enumerate(placements):
            where = f"{path}.{role}[{position}]"
            problems += kthena.generated_name_fits(
                f"{path}.name", model.name, model.groups, role, placement.replicas, placement.nodes - 1
            )
            if placement.replicas == 0:
                problems.append(
                    Problem(f"{where}.replicas", 0, "a group needs a pod of every role to serve", "use at least 1")
                )
    return problems


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (kthena_takes_the_model,)
