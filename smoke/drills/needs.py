"""What a stack must have before a thing is taken from it: a drill that can only lose is not begun."""

from smoke.cluster import ready
from smoke.drills.drill import Ground
from smoke.drills.serving import ServingRole
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


async def one_to_spare(ground: Ground) -> str | None:
    """A second engine of the first role; on Kthena one in the same group, which must keep one."""
    first = roles(ground)[0]
    engines = await ground.hands.engines(ground.model, first)
    if not isinstance(engines, ServingRole):
        return await _another(ground, (first,))
    if engines.replicas >= 2 or stand_in(ground.live.settings, ground.model):
        return None
    return f"each group of {engines.name} has one {first} engine; set {first}.replicas of {ground.model} to 2 or more"


async def another_group(ground: Ground) -> str | None:
    """On Kthena a second group: one is replaced as a whole. A Deployment has a new pod before the old one goes."""
    engines = await ground.hands.engines(ground.model, roles(ground)[0])
    return _alone(ground, engines) if isinstance(engines, ServingRole) else None


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
        engines = await ground.hands.engines(ground.model, role)
        if isinstance(engines, ServingRole):
            return _alone(ground, engines)
        number = sum(ready(pod) for pod in await ground.hands.pods_of(engines))
        if number < 2:
            return (
                f"{engines['metadata']['name']} has {number} engine and no channel answers meanwhile: every request "
                f"would be lost; set {role}.replicas of {ground.model} to 2 or more, or channel.enabled"
            )
    return None


def _alone(ground: Ground, engines: ServingRole) -> str | None:
    if engines.groups >= 2 or stand_in(ground.live.settings, ground.model):
        return None
    return (
        f"{engines.name} has one group, which Kthena replaces as a whole, and no channel answers meanwhile: every request "
        f"would be lost; set groups of {ground.model} to 2 or more, or channel.enabled"
    )
