"""What the store is worth: throughput of ten users with long shared contexts, with and without reuse (C7)."""

import asyncio
import time
from dataclasses import replace
from typing import Final

from settings.models import ModelSettings
from settings.settings import Settings
from smoke.answers import Streamed
from smoke.client import GatewayClient
from smoke.cost import LoadCost
from smoke.probe import LiveStack, Outcome, Probe, failed, passed
from smoke.probes.prefix import shares_a_cache, words_for
from smoke.prompts import nonce, prefix

USERS: Final = 10
REQUESTS: Final = 20
CONTEXTS: Final = 4
ANSWER_TOKENS: Final = 4
GAIN: Final = 1.3
"""At least 30 % above (C7)."""


def probes(settings: Settings) -> list[Probe]:
    """One a model that shares a cache."""
    return [_probe(model) for model in settings.models if shares_a_cache(settings, model)]


def _probe(model: ModelSettings) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        length = await words_for(stack.gateway, model.name, stack.settings.smoke.prefix_tokens)
        contexts = [prefix(length, nonce()) for _ in range(CONTEXTS)]
        without, _ = await _load(stack.gateway, model.name, contexts, salted=True)
        for context in contexts:
            await stack.gateway.chat(model.name, f"{context} Question {nonce()}?", max_tokens=1)
        reused, answers = await _load(stack.gateway, model.name, contexts, salted=False)
        outcome, cost = judge(without, reused), LoadCost.of(stack.settings, answers, REQUESTS / reused)
        return replace(outcome, evidence={**outcome.evidence, "cost": cost.model_dump()})

    return Probe(
        name=f"throughput:{model.name}",
        proves=f"{USERS} users with shared long contexts are served 30 % faster with the store",
        check=check,
        kind="disruptive",
    )


def judge(without: float, reused: float) -> Outcome:
    """Requests a second, without and with reuse, against the gain that is wanted."""
    gain, evidence = reused / without, {"without": round(without, 3), "with": round(reused, 3)}
    if gain >= GAIN:
        return passed(gain, "with/without store", GAIN, **evidence)
    return failed(
        f"{reused:.2f} requests a second with the store, {without:.2f} without",
        "raise kvStore.segment; see python -m smoke run for hits; the gain shows on long contexts only",
        gain,
        "with/without store",
        GAIN,
        **evidence,
    )


async def _load(
    gateway: GatewayClient, model: str, contexts: list[str], *, salted: bool
) -> tuple[float, list[Streamed]]:
    """Requests a second, and the answers.

    A salt of its own makes every request's blocks unknown, on the same engines with the same work.
    """
    started, queue = time.monotonic(), list(range(REQUESTS))
    answers: list[Streamed] = []

    async def user() -> None:
        while queue:
            context = contexts[queue.pop() % len(contexts)]
            options = {"cache_salt": nonce()} if salted else {}
            answers.append(
                await gateway.stream(model, f"{context} Question {nonce()}?", max_tokens=ANSWER_TOKENS, **options)
            )

    await asyncio.gather(*(user() for _ in range(USERS)))
    return REQUESTS / (time.monotonic() - started), answers
