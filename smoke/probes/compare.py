"""The same request to the cluster and to the channel, side by side: both answer, and they are the same model (C8)."""

from typing import Any, Final

from settings.channel import ChannelModel
from settings.settings import Settings
from smoke.answers import Answer, Completion, Usage
from smoke.client import CHAT, TARGET, chat_body
from smoke.errors import PermanentError, from_status
from smoke.probe import LiveStack, Outcome, Probe, failed, passed
from smoke.probes.stand_in import at_channel, served_by, stand_in
from smoke.prompts import nonce, prefix

WORDS: Final = 200
TOKENS: Final = 16
UNIT: Final = "difference in prompt tokens"


def probes(settings: Settings) -> list[Probe]:
    """One a model that has a stand-in at the channel."""
    found = ((model.name, stand_in(settings, model.name)) for model in settings.models)
    return [_probe(name, entry) for name, entry in found if entry]


def _probe(model: str, entry: ChannelModel) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        body = chat_body(model, prefix(WORDS, nonce()), max_tokens=TOKENS)
        inside = await _ask(stack, body, "cluster", f"cluster/{model}")
        outside = await _ask(stack, body, "channel", at_channel(entry))
        return judge(model, entry, inside, outside, stack.settings.smoke.compare_prompt_gap)

    return Probe(
        name=f"compare:{model}",
        proves="cluster and channel both answer the same request, and count its tokens alike",
        check=check,
        kind="paid",
    )


async def _ask(stack: LiveStack, body: dict[str, Any], place: str, expected: str) -> Answer:
    """The answer of one place. Raises SmokeError when it gives none, or when another place gave it."""
    answer = await stack.gateway.send("POST", CHAT, headers=stack.gateway.authorization() | {TARGET: place}, json=body)
    if answer.status != 200:
        raise from_status(answer.status, answer.message(), f"{expected}")
    if (who := served_by(answer)) != expected:
        raise PermanentError(
            f"{expected} was asked, and {who} answered",
            "the routes by which a smoke key chooses its target are not in force: run pulumi up",
        )
    return answer


def judge(model: str, entry: ChannelModel, inside: Answer, outside: Answer, limit: float) -> Outcome:
    """Pass when both gave tokens, and their tokenizers cut the same prompt into nearly as many."""
    here, there = _usage(inside, f"cluster/{model}"), _usage(outside, at_channel(entry))
    gap = abs(there.prompt_tokens - here.prompt_tokens) / here.prompt_tokens
    evidence = {
        place: {"seconds": round(answer.seconds, 3), "prompt": usage.prompt_tokens, "answer": usage.completion_tokens}
        for place, answer, usage in (("cluster", inside, here), ("channel", outside, there))
    }
    if gap <= limit:
        return passed(gap, UNIT, limit, **evidence)
    return failed(
        f"the same prompt has {here.prompt_tokens} tokens in the cluster and {there.prompt_tokens} at the channel: "
        f"{entry.model_name} is another model than {model}, or the channel adds text of its own",
        f"correct moonstack:channelModels inCluster or modelName of {entry.alias}, or raise smoke.comparePromptGap",
        gap,
        UNIT,
        limit,
        **evidence,
    )


def _usage(answer: Answer, who: str) -> Usage:
    usage = answer.parse(Completion, who).usage
    if usage is None or not usage.prompt_tokens or not usage.completion_tokens:
        raise PermanentError(f"{who} answered 200 and reports no tokens", "see its log, or ask the channel's provider")
    return usage
