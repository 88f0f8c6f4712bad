"""One model, served by the backend that its settings name."""

from collections.abc import Mapping, Sequence

import pulumi

from components.context import Context
from components.kthena.component import KthenaServing, KthenaServingArgs
from components.pd_serving import PdServing, PdServingArgs
from components.serving_plan import EnginePlan
from rules import names
from rules.serving_replicas import Running
from settings.models import ModelSettings
from settings.settings import Settings


def serve(
    model: ModelSettings,
    plans: Sequence[EnginePlan],
    settings: Settings,
    context: Context,
    opts: pulumi.ResourceOptions | None = None,
    running: Mapping[str, Running] | None = None,
) -> PdServing | KthenaServing:
    """The model's engines and routers; `plans` are those of the whole stack, `running` its ModelServings by name where Kthena scales."""
    engines = tuple(plan for plan in plans if plan.model is model)
    scaling = settings.autoscaling.engines
    if model.backend == "kthena":
        own = scaling if scaling.enabled else None  # an HPA would scale whole groups: Kthena scales its own roles
        return KthenaServing(
            model.name,
            KthenaServingArgs(
                model=model,
                engines=engines,
                kthena=settings.kthena,
                scaling=own,
                running=(running or {}).get(names.model_serving(model.name)),
            ),
            context,
            opts,
        )
    return PdServing(model.name, PdServingArgs(model=model, engines=engines, scaled=scaling.enabled), context, opts)
