"""What costs money: each alias of the channel answers, with one token."""

from settings.channel import ChannelModel
from settings.settings import Settings
from smoke.client import CHAT, chat_body
from smoke.errors import from_status
from smoke.probe import LiveStack, Outcome, Probe, passed


def probes(settings: Settings) -> list[Probe]:
    """One an alias where the channel is enabled."""
    return [_probe(model) for model in settings.channel_models.models] if settings.channel.enabled else []


def _probe(model: ChannelModel) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        answer = await stack.gateway.send("POST", CHAT, json=chat_body(model.alias, "Say a word.", max_tokens=1))
        if answer.status != 200:
            raise from_status(answer.status, answer.message(), f"alias {model.alias} ({model.model_name})")
        return passed(answer.seconds, "s")

    return Probe(
        name=f"alias:{model.alias}", proves="the alias is callable through the gateway", check=check, kind="paid"
    )
