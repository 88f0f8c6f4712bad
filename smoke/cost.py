"""What a million good tokens cost: chips and warm pool for the time of a load, and what the channel was paid for its answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from settings.capacity_plan import costs
from settings.settings import Settings
from smoke.answers import Streamed, Usage
from smoke.load import Sample
from smoke.probes.stand_in import CHANNEL

Paid = tuple[str, Usage | None]
"""Who answered (as the header `x-moonstack-served-by` says), and the tokens; None where the answer did not report them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Yuan of one load by what they were spent on."""

    chips: float
    """As declared, with the warm pool."""
    channel: float
    unpriced_tokens: int
    """Tokens of the channel whose model has no declared price; `channel` lacks them."""

    def per_million(self, good_tokens: int) -> float | None:
        """Yuan a million good tokens; None without any."""
        return round((self.chips + self.channel) / good_tokens * 1e6, 2) if good_tokens else None


class LoadCost(BaseModel):
    """One model's load: yuan that its time cost, and tokens of the answers that began within the objective."""

    model_config = ConfigDict(frozen=True)

    yuan: float
    seconds: float
    requests: int
    good_requests: int
    prompt_tokens: int
    answer_tokens: int

    @classmethod
    def of(cls, settings: Settings, answers: Sequence[Streamed], seconds: float) -> Self:
        """Chips, warm pool and channel for so many seconds; good is a first token within the scaler's `ttftSeconds`."""
        good = [one for one in answers if one.first_token_seconds <= settings.autoscaling.engines.ttft_seconds]
        used = [one.usage or Usage() for one in good]
        channel, _ = channel_spend(settings, [(one.served_by, one.usage) for one in answers])
        return cls(
            yuan=round(chip_spend(costs(settings), seconds) + channel, 6),
            seconds=round(seconds, 3),
            requests=len(answers),
            good_requests=len(good),
            prompt_tokens=sum(one.prompt_tokens for one in used),
            answer_tokens=sum(one.completion_tokens for one in used),
        )


class RunCost(BaseModel):
    """What a run says of money, in yuan. The figures a million tokens are null where no load was measured, or none of it was good."""

    model_config = ConfigDict(frozen=True)

    per_hour: dict[str, float]
    """Chips at minimum, as declared and at maximum, and the warm pool an hour and a month."""
    ttft_objective_seconds: float
    loads: dict[str, LoadCost] = {}
    """Probe of class `disruptive` → its load."""
    per_million_tokens: float | None = None
    """Over prompt and answer tokens within the objective."""
    per_million_answer_tokens: float | None = None
    """Over answer tokens alone, as the pulse counts; short answers to long prompts make it high."""
    channel: float = 0.0
    """What this run's own requests cost at the channel, by declared prices."""
    channel_tokens_without_price: int = 0


def run_cost(settings: Settings, evidence: Mapping[str, Any], at_channel: Iterable[Paid]) -> RunCost:
    """Cost of a run from its probes' evidence and from what the channel answered."""
    found = {name: LoadCost.model_validate(one["cost"]) for name, one in evidence.items() if "cost" in one}
    yuan = sum(load.yuan for load in found.values())
    answers = sum(load.answer_tokens for load in found.values())
    prompts = sum(load.prompt_tokens for load in found.values())
    channel, unpriced = channel_spend(settings, at_channel)
    spent = Cost(chips=yuan, channel=0.0, unpriced_tokens=0)
    return RunCost(
        per_hour=costs(settings),
        ttft_objective_seconds=settings.autoscaling.engines.ttft_seconds,
        loads=found,
        per_million_tokens=spent.per_million(prompts + answers),
        per_million_answer_tokens=spent.per_million(answers),
        channel=round(channel, 6),
        channel_tokens_without_price=unpriced,
    )


def cost_of(settings: Settings, samples: Sequence[Sample], seconds: float) -> Cost:
    """The cost of a pulse of so many seconds."""
    yuan, unpriced = channel_spend(settings, [(one.served_by, usage_of(settings, one)) for one in samples])
    return Cost(chips=chip_spend(costs(settings), seconds), channel=yuan, unpriced_tokens=unpriced)


def chip_spend(costs_per_hour: Mapping[str, float], seconds: float) -> float:
    """Yuan for chips as declared and the warm pool."""
    return (costs_per_hour["declared"] + costs_per_hour["warmPool"]) * seconds / 3600


def channel_spend(settings: Settings, answers: Iterable[Paid]) -> tuple[float, int]:
    """Yuan at the channel by `channelModels.models[].pricePerMillion*`, and the tokens of models without a price."""
    prices = {
        f"{CHANNEL}{price.model}": price for price in settings.channel_models.prices if price.prompt or price.answer
    }
    yuan, unpriced = 0.0, 0
    for served_by, usage in answers:
        if not served_by.startswith(CHANNEL):
            continue
        used = usage or Usage()
        if price := prices.get(served_by):
            yuan += (used.prompt_tokens * price.prompt + used.completion_tokens * price.answer) / 1e6
        else:
            unpriced += used.prompt_tokens + used.completion_tokens
    return yuan, unpriced


def usage_of(settings: Settings, sample: Sample) -> Usage:
    """A request's tokens; what was asked for where the answer did not report them, as when it broke off."""
    pulse = settings.smoke.pulse
    return sample.usage or Usage(prompt_tokens=pulse.prompt_words, completion_tokens=pulse.max_tokens)
