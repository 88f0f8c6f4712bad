"""Waits until every gateway has taken up the configuration that was just applied, and has found the routers."""

import asyncio
import time
from typing import Final

from rules.names import CONFIG_HEADER
from settings.settings import Settings
from smoke.client import CHAT, MODELS, GatewayClient, chat_body
from smoke.errors import TemporaryError

PATIENCE_SECONDS: Final = 180.0
"""The kubelet hands a changed ConfigMap over within its sync period and cache time, 60 to 90 s by default."""
ANSWERS_A_POD: Final = 3
PAUSE_SECONDS: Final = 1.0


async def settle(settings: Settings, gateway: GatewayClient, config: str, patience: float = PATIENCE_SECONDS) -> float:
    """Seconds until new connections, several a gateway pod in a row, all met the configuration `config`.

    Raises TemporaryError if some pod still has another one at the end of `patience`.
    """
    scaler = settings.autoscaling.gateway
    wanted = ANSWERS_A_POD * (scaler.min_replicas if scaler.enabled else settings.gateway.replicas)
    started, in_a_row = time.monotonic(), 0
    while in_a_row < wanted:
        answer = await gateway.send("GET", MODELS, headers={**gateway.authorization(), "Connection": "close"})
        in_a_row = in_a_row + 1 if answer.headers.get(CONFIG_HEADER) == config else 0
        if time.monotonic() - started > patience:
            raise TemporaryError(
                f"gateways still serve another configuration after {patience:g} s",
                "see Envoy's update_rejected statistics and the kubelet's log; run again",
            )
        if not in_a_row:
            await asyncio.sleep(PAUSE_SECONDS)
    return time.monotonic() - started


async def find_workers(settings: Settings, gateway: GatewayClient, patience: float = PATIENCE_SECONDS) -> None:
    """Until each model of the cluster is answered with anything but 503: routers that have just become Ready are found by
    DNS and a health check, seconds later.

    Raises TemporaryError if a model is still without a server at the end of `patience`.
    """
    started = time.monotonic()
    for model in settings.models:
        question = chat_body(model.name, "Ready?", max_tokens=1)
        while (await gateway.send("POST", CHAT, json=question)).status == 503:
            if time.monotonic() - started > patience:
                raise TemporaryError(
                    f"no server of {model.name} could take a request for {patience:g} s",
                    "run python -m smoke doctor; look at pods that are not Ready",
                )
            await asyncio.sleep(PAUSE_SECONDS)
