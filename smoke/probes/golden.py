"""The same answer with and without a cache: KV that moved between engines means what it should."""

from typing import Final

from settings.settings import Settings
from smoke.answers import Completion, TokenChoice
from smoke.client import chat_body
from smoke.errors import PermanentError
from smoke.probe import LiveStack, Outcome, Probe, failed, passed, skipped
from smoke.prompts import nonce, prefix

TOKENS: Final = 16
PROMPT: Final = prefix(60, "golden")
"""Long enough to fill several blocks of KV, always the same, so that later runs find it in the cache."""


def probes(settings: Settings) -> list[Probe]:
    """One a model."""
    return [_probe(model.name) for model in settings.models]


def _probe(model: str) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        if stack.engines is None:
            return skipped("an engine can only be asked alone through the cluster", "give smoke a kubeconfig")
        engines = await stack.engines.of(model)
        if not engines:
            raise PermanentError(f"no engine of {model} is Ready", "run python -m smoke doctor")
        asked = {"max_tokens": TOKENS, "logprobs": True, "top_logprobs": 2, "ignore_eos": True}
        alone = await stack.engines.chat(engines[0], chat_body(model, PROMPT, cache_salt=nonce(), **asked))
        answers = [await stack.gateway.chat(model, PROMPT, **asked) for _ in range(2)]
        return verdict(model, alone, answers, stack.settings.smoke.golden_logprob_gap)

    return Probe(
        name=f"golden-prompt:{model}",
        proves="prefill, transfer and decode give the tokens that one engine gives alone, without a cache",
        check=check,
    )


def verdict(model: str, alone: Completion, answers: list[Completion], tolerance: float) -> Outcome:
    """Pass when each answer equals the reference, or parts from it only where its two best tokens are nearly equal."""
    reference = alone.tokens()
    if len(reference) < TOKENS:
        raise PermanentError(f"{model} gives no log probabilities", "the engine must support logprobs in chat answers")
    equal = min(_equal(reference, answer.tokens()) for answer in answers)
    if equal >= TOKENS or _gap(reference[equal]) <= tolerance:
        return passed(equal, "equal tokens", TOKENS)
    return failed(
        f"token {equal + 1} of {model} differs from what the engine gives alone, and it was no close call "
        f"(gap {_gap(reference[equal]):.3g}): engines that share a cache differ in weights, dtype or block size",
        "compare revision, dtype and cache_prefix of the engines; delete the cache by restarting mooncake-master",
        equal,
        "equal tokens",
        TOKENS,
    )


def _equal(reference: list[TokenChoice], tokens: list[TokenChoice]) -> int:
    """How many leading tokens are equal."""
    count = 0
    for expected, got in zip(reference[:TOKENS], tokens, strict=False):
        if expected.token != got.token:
            break
        count += 1
    return count


def _gap(choice: TokenChoice) -> float:
    """Distance in log probability between the two best tokens of a position."""
    best = sorted((top.logprob for top in choice.top_logprobs), reverse=True)
    return best[0] - best[1] if len(best) > 1 else float("inf")
