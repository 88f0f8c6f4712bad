"""What a stack must have before a thing is taken from it: a drill that can only lose is not begun."""

from smoke.cluster import ready
from smoke.drills.drill import Ground
from smoke.probes.stand_in import stand_in


async def store(ground: Ground) -> str | None:
    """A Mooncake master."""
    return None if ground.live.settings.kv_store.enabled else "kvStore is off: there is no master"


async def scalers(ground: Ground) -> str | None:
    """Somebody who reads metrics."""
    scaling = ground.live.settings.autoscaling
    return None if scaling.engines.enabled or scaling.gateway.enabled else "autoscaling is off: nobody reads metrics"


async def another_prefill(ground: Ground) -> str | None:
    """A second engine of the role that a request comes to first."""
    return await _another(ground, roles(ground)[:1])


async def another_of_each_role(ground: Ground) -> str | None:
    """A second engine of every role: a disruption budget lets one go, and no eviction starts another before."""
    return await _another(ground, roles(ground))


def roles(ground: Ground) -> tuple[str, ...]:
    """The roles of the model's engines: prefill and decode, or one for both."""
    return tuple(next(one for one in ground.live.settings.models if one.name == ground.model).roles())


async def _another(ground: Ground, wanted: tuple[str, ...]) -> str | None:
    if stand_in(ground.live.settings, ground.model):
        return None  # the channel answers meanwhile
    for role in wanted:
        deployment = await ground.hands.engines(ground.model, role)
        number = sum(ready(pod) for pod in await ground.hands.pods_of(deployment))
        if number < 2:
            return (
                f"{deployment['metadata']['name']} has {number} engine and no channel answers meanwhile: every request "
                f"would be lost; set {role}.replicas of {ground.model} to 2 or more, or channel.enabled"
            )
    return None
