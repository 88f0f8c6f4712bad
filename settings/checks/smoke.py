"""The proof of a deployment can't be switched off where it matters."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rules.problem import Problem
from settings.paths import local_port

if TYPE_CHECKING:
    from settings.settings import Settings


def prod_is_proven(settings: "Settings") -> list[Problem]:
    """In prod the gate can be neither disabled nor skipped, and the network boundary has to bite."""
    if settings.environment != "prod":
        return []
    limit = "a deployment to prod counts as done only when smoke has passed"
    problems = []
    if settings.smoke_skip:
        problems.append(Problem("smokeSkip", True, limit, "remove it: pulumi config rm moonstack:smokeSkip"))
    if not settings.smoke.gate:
        problems.append(Problem("smoke.gate", False, limit, "remove it, or set it to true"))
    if not settings.network.enforced:
        limit = "in prod NetworkPolicies must be enforced, and smoke shows whether they are"
        problems.append(Problem("network.enforced", False, limit, "remove it, or set it to true"))
    return problems


def endpoint_is_known(settings: "Settings") -> list[Problem]:
    """The way `endpoint` needs an address when the gate uses it, and the local cluster's needs its port."""
    if settings.smoke.endpoint == "local":
        try:
            local_port()
        except ValueError as error:
            limit, _, fix = str(error).partition("; ")
            return [Problem("smoke.endpoint", "local", limit, fix)]
    if settings.smoke.gate and settings.smoke.via == "endpoint" and settings.smoke.endpoint is None:
        return [
            Problem(
                "smoke.endpoint",
                None,
                "smoke.via is endpoint",
                "give the gateway's base URL, or use smoke.via port-forward",
            )
        ]
    return []


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (prod_is_proven, endpoint_is_known)
