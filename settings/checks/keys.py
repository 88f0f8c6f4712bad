"""Keys are complete and used for what they are for."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rules.key_ends import rotate_command
from rules.problem import Problem

if TYPE_CHECKING:
    from settings.settings import Settings


def ids_are_unique(settings: "Settings") -> list[Problem]:
    """A key's id names its Secret and its value's configuration key."""
    seen: set[str] = set()
    problems = []
    for index, key in enumerate(settings.keys.keys):
        if key.id in seen:
            problems.append(
                Problem(f"keys.keys[{index}].id", key.id, "a key of this id exists already", "rename one of them")
            )
        seen.add(key.id)
    return problems


def the_channel_has_a_key(settings: "Settings") -> list[Problem]:
    """An enabled channel names an outbound key that is declared."""
    channel = settings.channel
    if not channel.enabled:
        return []
    outbound = [key.id for key in settings.keys.keys if key.outbound]
    if channel.key in outbound:
        return []
    names = ", ".join(outbound) or "none declared"
    return [
        Problem(
            "channel.key",
            channel.key,
            "must name a declared outbound key",
            f"declare one under keys.keys; outbound keys: {names}",
        )
    ]


def local_keys_stay_in_dev(settings: "Settings") -> list[Problem]:
    """Generated keys are for dev alone."""
    if settings.keys.source == "local" and settings.environment != "dev":
        return [
            Problem("keys.source", "local", "generated keys are for environment dev", "use secretsManager or config")
        ]
    return []


def external_delivery_is_complete(settings: "Settings") -> list[Problem]:
    """The operator reads Secrets Manager through a store, and only the key agent can then write the gateway's list."""
    keys = settings.keys
    if keys.delivery != "external-secrets":
        return []
    problems = []
    if keys.source != "secretsManager":
        problems.append(Problem("keys.source", keys.source, "external-secrets reads secretsManager", "use that source"))
    if keys.store is None:
        problems.append(
            Problem("keys.store", None, "is required by external-secrets", "name the operator's SecretStore")
        )
    if not keys.agent:
        problems.append(Problem("keys.agent", False, "external-secrets needs the key agent", "set it to true"))
    return problems


def no_key_has_expired(settings: "Settings") -> list[Problem]:
    """An expired key would be refused by whoever gets it."""
    return [
        Problem(
            f"keys.keys[{index}].expires",
            key.expires.date().isoformat(),
            f"key {key.id} has expired",
            "write the next version's end here, then rotate it: "
            + rotate_command(settings.environment, key.id, outbound=key.outbound),
        )
        for index, key in enumerate(settings.keys.keys)
        if key.expires and key.has_ended(datetime.now(UTC))
    ]


def keys_say_when_they_end(settings: "Settings") -> list[Problem]:
    """A key ends after it begins; in prod every key must say when."""
    problems = []
    for index, key in enumerate(settings.keys.keys):
        path = f"keys.keys[{index}].expires"
        if key.expires and key.not_before and key.expires <= key.not_before:
            problems.append(Problem(path, key.expires.isoformat(), "must be after notBefore", "correct one of them"))
        if key.expires is None and settings.environment == "prod":
            problems.append(Problem(path, None, "is required in prod", "say when the key ends"))
    return problems


def quotas_of_a_day_are_counted(settings: "Settings") -> list[Problem]:
    """Tokens are counted by the gateway and summed by the key agent; money needs the price of every model at the channel."""
    agent, recorded = settings.keys.agent, settings.channel_models.observability.record_token_usage
    unpriced = [price.model for price in settings.channel_models.prices if not price.prompt and not price.answer]
    problems = []
    for index, key in enumerate(settings.keys.keys):
        quotas = {"tokensPerDay": key.tokens_per_day, "spendPerDay": key.spend_per_day}
        for name, quota in quotas.items():
            path = f"keys.keys[{index}].{name}"
            if quota and not agent:
                problems.append(Problem(path, quota, "is enforced by the key agent", "set keys.agent to true"))
            if quota and not recorded:
                fix = "set channelModels.observability.recordTokenUsage to true"
                problems.append(Problem(path, quota, "needs the gateway's token counts", fix))
        if key.spend_per_day and unpriced:
            missing = f"no price is declared for {', '.join(unpriced)}"
            fix = "give their pricePerMillionInput and pricePerMillionOutput"
            problems.append(Problem(f"keys.keys[{index}].spendPerDay", key.spend_per_day, missing, fix))
    return problems


CHECKS: Final[tuple[Callable[["Settings"], list[Problem]], ...]] = (
    ids_are_unique,
    the_channel_has_a_key,
    local_keys_stay_in_dev,
    external_delivery_is_complete,
    no_key_has_expired,
    keys_say_when_they_end,
    quotas_of_a_day_are_counted,
)
OF_THE_DAY: Final = (no_key_has_expired,)
"""Those whose answer changes by itself: a stack that was deployed well fails them later, and has to be looked at all the same."""
