"""What one replica computed, another reads from the store."""

import asyncio
import time
from typing import Final

from rules import names
from settings.models import ModelSettings
from settings.settings import Settings
from smoke.answers import Completion
from smoke.client import chat_body
from smoke.engines import EXTERNAL_HITS, Engine, Engines, rise
from smoke.errors import PermanentError
from smoke.probe import LiveStack, Outcome, Probe, failed, passed, skipped
from smoke.probes.no_hit import no_hit
from smoke.probes.prefix import shares_a_cache, words_for
from smoke.prompts import nonce, prefix

SETTLE_SECONDS: Final = 0.5
"""Engines put blocks into the store beside answering: a reader that comes at once may be too early."""


def probes(settings: Settings) -> list[Probe]:
    """One a model."""
    return [_probe(model) for model in settings.models]


def _probe(model: ModelSettings) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        if not shares_a_cache(stack.settings, model):
            return skipped(f"{model.name} shares no cache", "give the model a connector, and enable kvStore")
        if stack.engines is None:
            return skipped("replicas can only be asked one by one through the cluster", "give smoke a kubeconfig")
        role = names.PREFILL if model.shape == "pd" else names.SERVE
        replicas = await stack.engines.of(model.name, role)
        if len(replicas) < 2:
            return skipped(f"{model.name} has {len(replicas)} Ready {role} replica(s)", "two are needed to share")
        length = await words_for(stack.gateway, model.name, stack.settings.smoke.prefix_tokens)
        return await _compare(stack, stack.engines, model, replicas, prefix(length, nonce()))

    return Probe(
        name=f"second-replica:{model.name}",
        proves="a prefix that one replica computed is read from the store by another",
        check=check,
    )


async def _compare(
    stack: LiveStack, engines: Engines, model: ModelSettings, replicas: list[Engine], shared: str
) -> Outcome:
    first, second = replicas[:2]
    _, cold = await _ask(engines, first, model.name, shared)
    await asyncio.sleep(SETTLE_SECONDS)
    before = await engines.counters([second])
    completion, warm = await _ask(engines, second, model.name, shared)
    after = await engines.counters([second])
    hits = rise(before, after, EXTERNAL_HITS, [second.pod])
    if hits == 0:
        what = f"{second.pod} computed again what {first.pod} had computed"
        return await no_hit(engines, model, what, before, after, [second.pod])
    if completion.usage is None or completion.usage.prompt_tokens == 0:
        raise PermanentError(f"{second.pod} reports no usage", "the engine must report usage in its answers")
    share, limit = hits / completion.usage.prompt_tokens, stack.settings.smoke.min_hit_share
    evidence = {"cold": round(cold, 3), "second": round(warm, 3), "hits": hits}
    if share >= limit:
        return passed(share, "share of prompt tokens from the store", limit, **evidence)
    return failed(
        f"only {hits:.0f} of {completion.usage.prompt_tokens} prompt tokens came from the store",
        "the store evicts or puts fail: raise kvStore.segment; see vllm:mooncake_store_operation_failed_keys_total",
        share,
        "share of prompt tokens from the store",
        limit,
        **evidence,
    )


async def _ask(engines: Engines, engine: Engine, model: str, shared: str) -> tuple[Completion, float]:
    """The answer of one engine, and how many seconds its one token took."""
    started = time.monotonic()
    completion = await engines.chat(engine, chat_body(model, f"{shared} Question {nonce()}?", max_tokens=1))
    return completion, time.monotonic() - started
