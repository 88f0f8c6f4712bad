"""What costs money: each alias answers by its own model, and each of the channel's models answers at the channel, with one token."""

from settings.channel import ChannelModel
from settings.settings import Settings
from smoke.answers import Answer
from smoke.client import CHAT, TARGET, chat_body
from smoke.errors import from_status
from smoke.probe import LiveStack, Outcome, Probe, failed, passed
from smoke.probes.stand_in import at_channel, served_by, stand_in


def probes(settings: Settings) -> list[Probe]:
    """One an alias where the channel is enabled."""
    return [_probe(entry) for entry in settings.channel_models.models] if settings.channel.enabled else []


def _probe(entry: ChannelModel) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        answer = await _ask(stack, entry.alias, entry)
        own = {f"cluster/{entry.in_cluster or entry.model_name}", at_channel(entry)}
        if (who := served_by(answer)) not in own:
            return _not_served(f"{who} stood in for alias {entry.alias} ({entry.model_name})")
        if who != at_channel(entry) and _leads_outside(stack.settings, entry):
            answer = await _ask(stack, entry.model_name, entry)
            if (who := served_by(answer)) != at_channel(entry):
                return _not_served(f"{entry.model_name} was asked of the channel, and {who} answered")
        return passed(answer.seconds, "s")

    return Probe(
        name=f"alias:{entry.alias}",
        proves="the alias answers by its own model, and the channel serves that model",
        check=check,
        kind="paid",
    )


async def _ask(stack: LiveStack, name: str, entry: ChannelModel) -> Answer:
    body = chat_body(name, "Say a word.", max_tokens=1)
    headers = stack.gateway.authorization() | {TARGET: "channel"}
    answer = await stack.gateway.send("POST", CHAT, headers=headers, json=body)
    if answer.status != 200:
        raise from_status(answer.status, answer.message(), f"alias {entry.alias} ({entry.model_name})")
    return answer


def _leads_outside(settings: Settings, entry: ChannelModel) -> bool:
    """Whether the model's own name reaches the channel: always, unless the cluster serves it by that name."""
    served = {model.name for model in settings.models}
    return entry.model_name not in served or stand_in(settings, entry.model_name) is entry


def _not_served(cause: str) -> Outcome:
    fix = (
        "correct modelName under moonstack:channelModels, or ask the channel's provider why it does not serve the model"
    )
    return failed(cause, fix, 0, "answers by its own model", 1)
