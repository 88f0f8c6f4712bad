"""Which model of the channel stands in for a model of the cluster, and what an answer says of who gave it."""

from typing import Final

from settings.channel import ChannelModel
from settings.settings import Settings
from smoke.answers import Answer
from smoke.client import SERVED_BY

CHANNEL: Final = "channel/"
"""How `x-moonstack-served-by` begins where the channel has answered; a model's name there follows."""


def stand_in(settings: Settings, model: str) -> ChannelModel | None:
    """The same model at the channel; None where the gateway leads no request for `model` there."""
    leads = settings.channel_models.fallback.enabled and settings.channel.retry.max_attempts > 1
    if not settings.channel.enabled or not leads:
        return None
    return next((one for one in settings.channel_models.models if (one.in_cluster or one.model_name) == model), None)


def at_channel(entry: ChannelModel) -> str:
    """What the header `x-moonstack-served-by` says when the channel's own model has answered."""
    return f"{CHANNEL}{entry.model_name}"


def served_by(answer: Answer) -> str:
    """Place and model that gave an answer."""
    return answer.headers.get(SERVED_BY, "nobody")
