"""From a stack's settings to what is replayed."""

from dataclasses import dataclass

from capacity.config import ControllerConfig
from capacity.simulate.engines import PodModel
from capacity.simulate.hpa import HpaModel
from capacity.simulate.run import Scenario
from rules import names
from rules.chips import engine_chip
from settings.capacity_plan import RolePlan, chip_cost, load_seconds, role_plans
from settings.node_pools import NodePoolSettings
from settings.scaling_rules import role_metrics, scale_down, scale_up
from settings.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds that one request keeps a slot of the role's batch, and until its first token on an idle engine."""

    prefill_seconds: float
    decode_seconds: float

    def of(self, role: str) -> tuple[float, float]:
        """(seconds in the batch, seconds to the first token) of a role."""
        if role == "prefill":
            return self.prefill_seconds, self.prefill_seconds
        if role == "decode":
            return self.decode_seconds, self.prefill_seconds
        return self.prefill_seconds + self.decode_seconds, self.prefill_seconds


def scenarios(settings: Settings, work: Work) -> list[Scenario]:
    """One for every scaled role and pool that the controller tends; empty when the stack scales nothing."""
    config = ControllerConfig.from_settings(settings)
    pools = {pool.name: pool for pool in settings.node_pools}
    known = {target.name for target in config.targets}
    return [
        _scenario(settings, config, plan, pools[plan.placement.pool], work)
        for plan in role_plans(settings)
        if plan.scaled and _name(plan) in known
    ]


def with_scalers(settings: Settings) -> Settings:
    """The settings with their engines' scalers turned on."""
    engines = settings.autoscaling.engines.model_copy(update={"enabled": True})
    scaling = settings.autoscaling.model_copy(update={"engines": engines})
    return settings.model_copy(update={"autoscaling": scaling})


def _name(plan: RolePlan) -> str:
    return names.engine(plan.model.name, plan.role, plan.placement.pool)


def _scenario(
    settings: Settings, config: ControllerConfig, plan: RolePlan, pool: NodePoolSettings, work: Work
) -> Scenario:
    engines = settings.autoscaling.engines
    in_batch, first_token = work.of(plan.role)
    return Scenario(
        config=config,
        target=config.target(_name(plan)),
        pod=PodModel(
            slots=plan.model.engine.max_num_seqs,
            request_seconds=in_batch,
            first_token_seconds=first_token,
            load_seconds=load_seconds(plan.model, engine_chip(pool.chip, plan.model.engine.build)),
        ),
        metrics=role_metrics(settings, plan.role, plan.model.engine.max_num_seqs),
        hpa=HpaModel(plan.least, plan.most, scale_up(engines), scale_down(engines)),
        warm=plan.warm,
        pod_cost=plan.placement.chips * chip_cost(pool),
        replicas=plan.least,
    )
