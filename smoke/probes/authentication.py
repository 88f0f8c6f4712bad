"""Without a valid key there is no answer: 401, in OpenAI's shape, before anything else is looked at."""

import secrets
from collections.abc import Callable

from settings.settings import Settings
from smoke.client import CHAT, chat_body
from smoke.probe import LiveStack, Outcome, Probe
from smoke.probes.refusal import refused


def probes(settings: Settings) -> list[Probe]:
    """No key, a wrong key, and a malformed header."""
    model = settings.models[0].name if settings.models else "none"
    return [
        _probe("no-key", "a request without a key", model, lambda stack: {}),
        _probe(
            "wrong-key",
            "a request with an unknown key",
            model,
            lambda stack: {"Authorization": f"Bearer sk-{secrets.token_hex(24)}"},
        ),
        _probe(
            "malformed-key",
            "a request whose key carries a second 'Bearer '",
            model,
            lambda stack: {"Authorization": stack.gateway.authorization()["Authorization"].replace(" ", " Bearer ", 1)},
        ),
    ]


def _probe(name: str, what: str, model: str, headers: Callable[[LiveStack], dict[str, str]]) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        answer = await stack.gateway.send(
            "POST", CHAT, headers=headers(stack), json=chat_body(model, "x", max_tokens=1)
        )
        return refused(
            answer,
            401,
            what,
            "the gateway's key filter is not in force: see its log for rejected configuration, then run pulumi up",
        )

    return Probe(name=f"401:{name}", proves=f"{what} is answered with 401", check=check)
