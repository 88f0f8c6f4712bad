"""Runs drills one after the other, each under steady load with long streams."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from smoke.drills.drill import Drill, DrillResult, Ground, judge
from smoke.drills.hands import Hands
from smoke.errors import PermanentError, SmokeError
from smoke.load import Load, Request
from smoke.probe import LiveStack

PROOF_SECONDS: Final = 120.0


async def run_drills(
    live: LiveStack, model: str, drills: Sequence[Drill], listener: Callable[[DrillResult], None] = lambda _: None
) -> list[DrillResult]:
    """Each drill's result. Raises PermanentError where the cluster can't be reached from here."""
    if live.engines is None:
        raise PermanentError("drills need the cluster", "give smoke a kubeconfig")
    ground = Ground(live=live, hands=Hands(live.engines.cluster), model=model)
    results = []
    for drill in drills:
        results.append(await run_drill(drill, ground))
        listener(results[-1])
    return results


async def run_drill(drill: Drill, ground: Ground) -> DrillResult:
    """Load, then the disturbance, then load until well after its end; a disturbance that fails is a skipped or failed drill."""
    config = ground.live.settings.smoke.drills
    if drill.local_only and ground.live.settings.cluster.kubeconfig != "local":
        return _not_run(drill, "only on the local cluster")
    if lacking := await drill.needs(ground):
        return _not_run(drill, lacking)
    load = Load(ground.live.gateway, Request(model=ground.model, max_tokens=config.max_tokens))
    problem: SmokeError | None = None
    ended = 0.0

    async def disturb() -> None:
        nonlocal problem, ended
        await asyncio.sleep(config.settle_seconds)
        try:
            await drill.act(ground)
        except SmokeError as error:
            problem = error
        ended = load.now
        await asyncio.sleep(config.settle_seconds)
        await _answered_after(load, ended)

    await load.closed_until(config.users, disturb())
    result = judge(drill, load.samples, ended, config.slow_seconds)
    if problem is None:
        return result
    return result.model_copy(update={"verdict": "fail", "cause": f"{problem}"})


async def _answered_after(load: Load, ended: float) -> None:
    """Until a request that began after the end is answered: a slow stack takes longer than the settling for one."""
    while load.now - ended < PROOF_SECONDS and not any(
        one.began > ended and one.outcome == "ok" for one in load.samples
    ):
        await asyncio.sleep(0.2)


def _not_run(drill: Drill, cause: str) -> DrillResult:
    return DrillResult(
        name=drill.name,
        requests=0,
        lost=0,
        broken=0,
        slow=0,
        verdict="skip",
        seconds=0,
        cause=cause,
        carried_by=drill.carried_by,
    )
