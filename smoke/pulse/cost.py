"""What a million good tokens cost: chips and warm pool for the time of the pulse, and what the channel was paid for its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from settings.capacity_plan import costs
from settings.settings import Settings
from smoke.answers import Usage
from smoke.load import Sample
from smoke.probes.stand_in import CHANNEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Yuan of one pulse by what they were spent on."""

    chips: float
    """As declared, with the warm pool."""
    channel: float
    unpriced_tokens: int
    """Tokens of the channel whose model has no declared price; `channel` lacks them."""

    def per_million(self, good_tokens: int) -> float | None:
        """Yuan a million good tokens; None without any."""
        return round((self.chips + self.channel) / good_tokens * 1e6, 2) if good_tokens else None


def cost_of(settings: Settings, samples: Sequence[Sample], seconds: float) -> Cost:
    """The cost of a pulse of so many seconds."""
    yuan, unpriced = channel_spend(settings, samples)
    return Cost(chips=chip_spend(costs(settings), seconds), channel=yuan, unpriced_tokens=unpriced)


def chip_spend(costs_per_hour: Mapping[str, float], seconds: float) -> float:
    """Yuan for chips as declared and the warm pool."""
    return (costs_per_hour["declared"] + costs_per_hour["warmPool"]) * seconds / 3600


def channel_spend(settings: Settings, samples: Sequence[Sample]) -> tuple[float, int]:
    """Yuan at the channel by `channelModels.models[].pricePerMillion*`, and the tokens of models without a price."""
    prices = {
        f"{CHANNEL}{price.model}": price for price in settings.channel_models.prices if price.prompt or price.answer
    }
    yuan, unpriced = 0.0, 0
    for sample in samples:
        if not sample.served_by.startswith(CHANNEL):
            continue
        used = usage_of(settings, sample)
        if price := prices.get(sample.served_by):
            yuan += (used.prompt_tokens * price.prompt + used.completion_tokens * price.answer) / 1e6
        else:
            unpriced += used.prompt_tokens + used.completion_tokens
    return yuan, unpriced


def usage_of(settings: Settings, sample: Sample) -> Usage:
    """A request's tokens; what was asked for where the answer did not report them, as when it broke off."""
    pulse = settings.smoke.pulse
    return sample.usage or Usage(prompt_tokens=pulse.prompt_words, completion_tokens=pulse.max_tokens)
