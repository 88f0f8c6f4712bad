"""The weekly review: warm pools are sized by how often they were needed, within their bounds and the chips that they share."""

import logging
import time
from collections.abc import Sequence

from capacity.act.actor import Actor
from capacity.act.memory import Memory, Review
from capacity.config import ControllerConfig, Target
from capacity.kube import KubeError
from capacity.plan.history import MINUTES_PER_DAY
from capacity.telemetry import Telemetry
from rules.warm_pool import REVIEW_DAYS, reviewed
from rules.warm_share import Claim, shared

log = logging.getLogger(__name__)
WEEK_MINUTES = REVIEW_DAYS * MINUTES_PER_DAY
TOGETHER_MINUTES = 60
"""Pools of a node pool whose weeks end so close to one another are reviewed together, as they share its chips."""


class WarmReview:
    """Looks once a minute. Between reviews it only lowers: a bound or a budget that was lowered holds at once.

    Nothing shrinks while pods of the pool are in service: a smaller Deployment might delete just those.
    """

    def __init__(self, config: ControllerConfig, actor: Actor, memory: Memory, telemetry: Telemetry) -> None:
        self._config, self._actor, self._memory, self._telemetry = config, actor, memory, telemetry
        self._by_pool: dict[str, list[Target]] = {}
        for target in config.targets:
            if target.warm is not None:
                self._by_pool.setdefault(target.pool, []).append(target)

    async def minute(self) -> None:
        """One minute more was watched; review the pools whose week is over."""
        for pool, targets in self._by_pool.items():
            for target in targets:
                kept = self._memory.target(target.name)
                kept.watched += 1
                self._telemetry.warm_week.labels(target.name).set(kept.used)
            try:
                await self._look(targets)
            except KubeError as error:
                log.warning("warm pools on %s: %s", pool, error)

    async def _look(self, targets: Sequence[Target]) -> None:
        sizes = {target.name: await self._actor.warm_size(target.warm or "") for target in targets}
        over = any(self._memory.target(target.name).watched >= WEEK_MINUTES for target in targets)
        due = [t for t in targets if over and self._memory.target(t.name).watched >= WEEK_MINUTES - TOGETHER_MINUTES]
        high, budget = self._config.warm_high, self._config.warm_chips
        standing = shared([self._claim(t, None, min(sizes[t.name], high)) for t in targets], budget)
        asked = {t.name: self._asked(sizes[t.name], t) if t in due else standing[t.name] for t in targets}
        held = [t.name for t in targets if asked[t.name] < sizes[t.name] and self._memory.target(t.name).active]
        fixed = {t.name: sizes[t.name] if t.name in held else standing[t.name] for t in targets}
        moving = [target.name for target in due if target.name not in held]
        claims = [self._claim(t, None if t.name in moving else fixed[t.name], asked[t.name]) for t in targets]
        given = shared(claims, budget)
        for target in sorted(targets, key=lambda target: given[target.name] - sizes[target.name]):
            name = target.name
            await self._resize(target, sizes[name], given[name])
            if name in moving:
                self._note(name, sizes[name], asked[name], given[name])

    def _asked(self, size: int, target: Target) -> int:
        """What the target's own week asks for."""
        config, used = self._config, self._memory.target(target.name).used
        return reviewed(size, used, config.review_activations, config.warm_low, config.warm_high)

    def _claim(self, target: Target, fixed: int | None, asked: int) -> Claim:
        """`fixed`: what the pool holds whatever others ask for, as its week is not over or its pods are in service."""
        used, low = self._memory.target(target.name).used, self._config.warm_low
        if fixed is not None:
            low = asked = fixed
        return Claim(name=target.name, chips=target.chips, low=low, wanted=asked, activations=used)

    async def _resize(self, target: Target, size: int, after: int) -> None:
        if after != size and not (after < size and self._memory.target(target.name).active):
            await self._actor.resize_warm(target.warm or "", after)
            log.info("%s: %d warm pods -> %d", target.name, size, after)
            size = after
        self._telemetry.warm_size.labels(target.name).set(size)

    def _note(self, name: str, before: int, asked: int, after: int) -> None:
        kept = self._memory.target(name)
        log.info("%s: %d activations in a week; %d warm pods, asked %d, got %d", name, kept.used, before, asked, after)
        kept.review = Review(at=time.time(), activations=kept.used, before=before, asked=asked, after=after)
        kept.watched, kept.used, self._memory.dirty = 0, 0, True
