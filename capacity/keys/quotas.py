"""Quotas of a day: what each key's meters read, whose tokens are used up, and whose requests the channel is closed to."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from capacity.keys.config import AgentConfig, AgentKey
from capacity.keys.usage import TokenCount
from rules.channel_gate import Reason

_CHANNEL: Final = "channel/"


def meters(config: AgentConfig, counts: Iterable[TokenCount]) -> dict[str, float]:
    """Reading of each meter: tokens under a key's id, yuan under `<id>:yuan`, for keys that have such a quota.

    A client key's tokens are all of its requests'; an outbound key's are those that it paid for at the channel, as is money for both.
    """
    found = {meter: 0.0 for key in config.keys for meter, quota in _quotas(key).items() if quota is not None}
    payers = {key.id: key.pays_with for key in config.keys}
    prices = {price.model: price for price in config.prices}
    for count in counts:
        _add(found, count.client, count.value)
        if count.served_by.startswith(_CHANNEL) and (payer := payers.get(count.client)):
            price = prices.get(count.served_by.removeprefix(_CHANNEL))
            yuan = count.value * price.of(count.direction) / 1e6 if price else 0.0
            _add(found, payer, count.value)
            for key_id in (count.client, payer):
                _add(found, _yuan(key_id), yuan)
    return found


def exhausted(key: AgentKey, used: Mapping[str, float]) -> bool:
    """Whether a key's tokens of the day are used up."""
    return key.tokens_per_day is not None and used.get(key.id, 0.0) >= key.tokens_per_day


def overspent(key: AgentKey, used: Mapping[str, float]) -> bool:
    """Whether a key's money of the day is spent."""
    return key.spend_per_day is not None and used.get(_yuan(key.id), 0.0) >= key.spend_per_day


def closed(config: AgentConfig, used: Mapping[str, float], now: datetime) -> dict[str, Reason]:
    """The client keys whose requests may not go to the channel now, and why."""
    outbound = {key.id: key for key in config.keys if key.outbound}
    found: dict[str, Reason] = {}
    for client in config.keys:
        payer = outbound.get(client.pays_with or "")
        if payer and (reason := _reason(client, payer, used, now)):
            found[client.id] = reason
    return found


def _reason(client: AgentKey, payer: AgentKey, used: Mapping[str, float], now: datetime) -> Reason | None:
    if not payer.valid_at(now):
        return "key-expired"
    if exhausted(payer, used):
        return "tokens-of-the-day"
    if overspent(payer, used) or overspent(client, used):
        return "spend-of-the-day"
    return None


def _quotas(key: AgentKey) -> dict[str, float | None]:
    return {key.id: key.tokens_per_day, _yuan(key.id): key.spend_per_day}


def _yuan(key_id: str) -> str:
    return f"{key_id}:yuan"


def _add(found: dict[str, float], meter: str, value: float) -> None:
    if meter in found:
        found[meter] += value
