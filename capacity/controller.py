"""The leader's loop: look, plan, act, remember."""

import asyncio
import logging
import time
from dataclasses import replace

from capacity.act import memory as memories
from capacity.act.actor import Actor
from capacity.act.leader import Elector
from capacity.act.memory import Memory
from capacity.act.review import WarmReview
from capacity.config import ControllerConfig, Target
from capacity.kube import Kube, KubeError
from capacity.observe import Observer
from capacity.plan.model import Hpa, Route, TargetState
from capacity.plan.planner import plan
from capacity.pods import PodBook
from capacity.samples import SampleBook
from capacity.telemetry import Telemetry
from rules.floor import Floor

log = logging.getLogger(__name__)
TICK_SECONDS = 0.5
HPA_SECONDS = 2.0
SAVE_SECONDS = 60.0


class Controller:
    """Plans while it leads; a replica that does not lead forgets its plans, so that it starts from what is saved."""

    def __init__(
        self,
        config: ControllerConfig,
        kube: Kube,
        pods: PodBook,
        samples: SampleBook,
        elector: Elector,
        telemetry: Telemetry,
    ) -> None:
        self._config, self._kube, self._pods, self._samples = config, kube, pods, samples
        self._elector, self._telemetry = elector, telemetry
        self._actor = Actor(kube, config.namespace, telemetry)

    async def run(self) -> None:
        """Lead whenever the Lease is ours, until cancelled."""
        await self._pods.synced.wait()
        while True:
            self._telemetry.leader.set(self._elector.leading)
            if self._elector.leading:
                try:
                    await self._lead()
                except KubeError as error:
                    log.warning("leading: %s", error)
            await asyncio.sleep(TICK_SECONDS)

    async def _lead(self) -> None:
        """One term of leadership."""
        memory = await memories.load(self._kube, self._config.namespace, self._config.prediction.history_days)
        term = Term(self._config, self._actor, memory, self._pods, self._samples, self._telemetry)
        saved = time.monotonic()
        log.info("leading")
        while self._elector.leading:
            started = time.monotonic()
            await term.tick()
            if memory.dirty or started - saved >= SAVE_SECONDS:
                await memories.save(self._kube, self._config.namespace, memory)
                saved = started
            await asyncio.sleep(max(0.05, TICK_SECONDS - (time.monotonic() - started)))


class Term:
    """The plans of one term of leadership."""

    def __init__(
        self,
        config: ControllerConfig,
        actor: Actor,
        memory: Memory,
        pods: PodBook,
        samples: SampleBook,
        telemetry: Telemetry,
    ) -> None:
        self._config, self._actor, self._memory, self._telemetry = config, actor, memory, telemetry
        self._observer = Observer(config, pods, samples, memory, telemetry)
        self._review = WarmReview(config, actor, memory, telemetry)
        self._states: dict[str, TargetState] = {}
        self._hpas: dict[str, Hpa | None] = {}
        self._hpas_at = -1e9

    async def tick(self) -> None:
        """Look at every target once and do what is due. Raises KubeError when the HPAs can't be read."""
        if time.monotonic() - self._hpas_at >= HPA_SECONDS:
            names = [target.name for target in self._config.targets if target.scaled]
            self._hpas = {name: await self._actor.hpa(name) for name in names}
            self._hpas_at = time.monotonic()
        minutes = [await self._tend(target) for target in self._config.targets]
        if any(minutes):
            await self._review.minute()

    async def _tend(self, target: Target) -> bool:
        """True when a minute of its load has closed."""
        seen = self._observer.look(target, self._hpas)
        closed = self._observer.note_load(target, seen, int(time.time() // 60))
        if closed:
            self._memory.target(target.name).renewed = time.time()
        before = self._states.get(target.name) or self._remembered(target)
        state, actions = plan(self._config, target, seen, before)
        done = await self._actor.carry_out(actions)
        if any(action not in done for action in actions):
            state = replace(state, active=before.active, costs_at=before.costs_at)
        if done:
            self._hpas_at = -1e9
        for action in done:
            if isinstance(action, Route) and action.active and action.reason == "load":
                self._telemetry.activations.labels(target.name).inc()
                self._memory.note_activation(target.name)
        self._keep(target, state)
        return closed

    def _remembered(self, target: Target) -> TargetState:
        """At the start of a term: the floor that stands may not fall for a while, and lost activations are known."""
        hpa, kept = self._hpas.get(target.name), self._memory.target(target.name)
        floor = Floor(replicas=hpa.low, changed=time.monotonic()) if hpa else None
        return TargetState(floor=floor, active=kept.active)

    def _keep(self, target: Target, state: TargetState) -> None:
        self._states[target.name] = state
        kept = self._memory.target(target.name)
        kept.base = target.low
        if state.floor is not None:
            self._telemetry.floor.labels(target.name).set(state.floor.replicas)
            self._telemetry.clamped.labels(target.name).set(state.floor.clamped)
        floor = state.floor.replicas if state.floor else None
        if (floor, state.active) != (kept.floor, kept.active):
            kept.floor, kept.active, kept.renewed = floor, state.active, time.time()
            self._memory.dirty = True
