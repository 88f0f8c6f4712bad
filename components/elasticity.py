"""Everything that makes a stack grow and shrink, in the order in which it has to come and go."""

from collections.abc import Sequence

import pulumi

from components.autoscaling import Autoscaling, AutoscalingArgs
from components.capacity_controller import CapacityController, needed
from components.context import Context
from components.observability import Observability
from components.serving_plan import EnginePlan
from components.warm_pool import WarmPool, WarmPoolArgs
from settings.settings import Settings


def elasticity(
    settings: Settings, engines: Sequence[EnginePlan], context: Context, opts: pulumi.ResourceOptions | None = None
) -> list[pulumi.Resource]:
    """Controller, warm pool, scalers and monitoring, as far as the settings ask for them.

    Scalers depend on the controller: they come after the metrics API and go before it.
    """
    made: list[pulumi.Resource] = []
    if needed(settings):
        made.append(CapacityController("capacity", settings, context, opts))
    if settings.warm_pool.enabled:
        made.append(WarmPool("warm-pool", WarmPoolArgs(settings=settings.warm_pool, engines=engines), context, opts))
    if settings.autoscaling.gateway.enabled or settings.autoscaling.engines.enabled:
        after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[*made]))
        made.append(Autoscaling("autoscaling", AutoscalingArgs(settings=settings, engines=engines), context, after))
    watched = settings.observability
    if watched.pod_monitors or watched.alerts or watched.dashboards:
        made.append(Observability("observability", settings, context, opts))
    return made
