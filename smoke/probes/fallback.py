"""A fault in the cluster is bridged by the external channel: asked for by a route whose first target is empty."""

from typing import Final

from settings.keys import KeySettings
from settings.models import ModelSettings
from settings.settings import Settings
from smoke.client import CHAT, TARGET, chat_body
from smoke.errors import PermanentError, from_status
from smoke.keys import read_key
from smoke.probe import LiveStack, Outcome, Probe, failed, passed, skipped
from smoke.probes.stand_in import served_by, stand_in

WISH: Final = {TARGET: "fallback"}


def probes(settings: Settings) -> list[Probe]:
    """One for each model that has a stand-in at the channel, and one that a client's key can't choose it."""
    bridged = [model for model in settings.models if stand_in(settings, model.name)]
    clients = [key for key in settings.keys.keys if key.purpose == "client" and key.channel_key is None]
    separation = [_separation(bridged[0], clients[0])] if bridged and clients else []
    return [*(_probe(model) for model in bridged), *separation]


def _probe(model: ModelSettings) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        headers = stack.gateway.authorization() | WISH
        body = chat_body(model.name, "Say a word.", max_tokens=1)
        answer = await stack.gateway.send("POST", CHAT, headers=headers, json=body)
        if answer.status != 200:
            raise from_status(answer.status, answer.message(), f"{model.name} without its engines")
        who = served_by(answer)
        if not who.startswith("channel/"):
            return failed(
                f"without its engines {model.name} was answered by {who}, not by the channel",
                "the gateway's fallback is not in force: run pulumi up",
                0,
                "answers by the channel",
                1,
            )
        return passed(1, "answers by the channel", 1)

    return Probe(
        name=f"fallback:{model.name}", proves="the channel answers where the cluster has no engine", check=check
    )


def _separation(model: ModelSettings, key: KeySettings) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        try:
            value = await read_key(stack.settings, key.id, stack.engines.cluster if stack.engines else None)
        except PermanentError as error:
            return skipped(error.cause, f"run where key {key.id} can be read")
        gateway = stack.gateway.with_key(value)
        body = chat_body(model.name, "Say a word.", max_tokens=1)
        answer = await gateway.send("POST", CHAT, headers=gateway.authorization() | WISH, json=body)
        if answer.status != 200:
            raise from_status(answer.status, answer.message(), f"{model.name} with key {key.id}")
        who = served_by(answer)
        if not who.startswith("cluster/"):
            return failed(
                f"key {key.id} of purpose client chose its target, and was answered by {who}",
                "the purposes of keys are not in force at the gateway: run pulumi up",
                0,
                "answers by the cluster",
                1,
            )
        return passed(1, "answers by the cluster", 1)

    return Probe(
        name="key-separation", proves="a client's key can't use what is reserved to the smoke key", check=check
    )
