"""A prefix computed once is not computed again: TTFT falls, and the engines' own counters say that the store was hit."""

from typing import Final

from rules import names
from settings.models import ModelSettings
from settings.settings import Settings
from smoke.client import GatewayClient
from smoke.engines import EXTERNAL_HITS, Engines, rise
from smoke.errors import PermanentError
from smoke.probe import LiveStack, Outcome, Probe, failed, passed, skipped
from smoke.probes.no_hit import no_hit
from smoke.prompts import nonce, prefix, words

COLD: Final = 2
"""Prefixes nobody has seen. The fastest of each kind counts: an engine's slow first request can't flatter the cache, and
what else the machine does can't spoil it."""
WARM: Final = 4
RACES: Final = 4
"""More new prefixes tried while decode has loaded nothing: prefill saves blocks while decode already asks for them, and on
a busy machine decode may be the first."""


def probes(settings: Settings) -> list[Probe]:
    """One a model."""
    return [_probe(model) for model in settings.models]


def _probe(model: ModelSettings) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        if not shares_a_cache(stack.settings, model):
            return skipped(f"{model.name} shares no cache", "give the model a connector, and enable kvStore")
        length = await words_for(stack.gateway, model.name, stack.settings.smoke.prefix_tokens)
        if stack.engines is None:
            return _judge(stack.settings, model, await _measure(stack.gateway, model.name, length))
        return await _with_counters(stack, stack.engines, model, length)

    return Probe(
        name=f"shared-prefix:{model.name}",
        proves="requests with a shared prefix get their first token sooner, by KV from the store",
        check=check,
    )


def shares_a_cache(settings: Settings, model: ModelSettings) -> bool:
    """Whether the model's engines are declared to share KV through the store."""
    return settings.kv_store.enabled and model.connector != "none"


async def words_for(gateway: GatewayClient, model: str, tokens: int) -> int:
    """How many of our words make `tokens` tokens in this model's tokenizer, found by two small requests."""
    small, large = 20, 60
    used = []
    for count in (small, large):
        completion = await gateway.chat(model, words(count, "length"), max_tokens=1)
        used.append(completion.usage.prompt_tokens if completion.usage else 0)
    per_word = (used[1] - used[0]) / (large - small)
    if per_word <= 0:
        raise PermanentError(
            f"{model} reports no usage of prompt tokens", "the engine must report usage in its answers"
        )
    return max(1, round(tokens / per_word))


async def _with_counters(stack: LiveStack, engines: Engines, model: ModelSettings, length: int) -> Outcome:
    """Decode engines load what prefill engines computed, so on them every request is a hit of the store."""
    role = names.DECODE if model.shape == "pd" else None
    readers = await engines.of(model.name, role)
    before = await engines.counters(readers)
    measured = await _measure(stack.gateway, model.name, length)
    after = await engines.counters(readers)
    pods = [engine.pod for engine in readers]
    for _ in range(RACES if model.shape == "pd" else 0):
        if rise(before, after, EXTERNAL_HITS, pods):
            break
        await _first_token(stack.gateway, model.name, prefix(length, nonce()))
        after = await engines.counters(readers)
    hits = rise(before, after, EXTERNAL_HITS, pods)
    if model.shape == "pd" and hits == 0:
        return await no_hit(engines, model, "decode loaded no KV that prefill had computed", before, after, pods)
    return _judge(stack.settings, model, measured, hits)


async def _measure(gateway: GatewayClient, model: str, length: int) -> tuple[list[float], list[float]]:
    """Seconds to the first token, cold and warm."""
    shared = [prefix(length, nonce()) for _ in range(COLD)]
    cold = [await _first_token(gateway, model, text) for text in shared]
    warm = [await _first_token(gateway, model, shared[-1]) for _ in range(WARM)]
    return cold, warm


async def _first_token(gateway: GatewayClient, model: str, shared: str) -> float:
    streamed = await gateway.stream(model, f"{shared} Question {nonce()}?", max_tokens=2)
    return streamed.first_token_seconds


def _judge(
    settings: Settings, model: ModelSettings, measured: tuple[list[float], list[float]], hits: float | None = None
) -> Outcome:
    cold, warm = measured
    ratio, limit = min(warm) / min(cold), settings.smoke.warm_over_cold_ttft
    evidence = {"cold": _rounded(cold), "warm": _rounded(warm), "hits": hits}
    if ratio <= limit:
        return passed(ratio, "warm/cold TTFT", limit, **evidence)
    return failed(
        f"the first token of {model.name} comes after {min(warm):.2f} s at best with a shared prefix, "
        f"{min(cold):.2f} s without: the cache saves too little",
        "see whether engines are overloaded (python -m smoke doctor), the store evicts (kvStore.segment), "
        "or the prefix is too short for this model (smoke.prefixTokens)",
        ratio,
        "warm/cold TTFT",
        limit,
        **evidence,
    )


def _rounded(seconds: list[float]) -> list[float]:
    return [round(value, 3) for value in seconds]
