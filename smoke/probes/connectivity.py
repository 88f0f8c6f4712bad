"""A model answers: 200 with a body, whole and streamed."""

from settings.settings import Settings
from smoke.errors import PermanentError
from smoke.probe import LiveStack, Outcome, Probe, failed, passed


def probes(settings: Settings) -> list[Probe]:
    """Two a model."""
    return [probe for model in settings.models for probe in (_whole(model.name), _streamed(model.name))]


def _whole(model: str) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        completion = await stack.gateway.chat(model, "Say a word.", max_tokens=4)
        if not completion.choices:
            raise PermanentError(f"{model} answered 200 without choices", "see what answers at the endpoint")
        tokens = completion.usage.completion_tokens if completion.usage else 0
        if tokens < 1:
            return failed(f"{model} answered 200 with no token", "read the engine's log", tokens, "tokens", 1)
        return passed(tokens, "tokens", 1)

    return Probe(name=f"chat:{model}", proves="a chat request is answered with 200 and a body", check=check)


def _streamed(model: str) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        streamed = await stack.gateway.stream(model, "Say some words.", max_tokens=8)
        if streamed.chunks < 2:
            return failed(
                f"the answer of {model} came in {streamed.chunks} piece(s): something buffers the stream",
                "look for a proxy or load balancer that buffers text/event-stream",
                streamed.chunks,
                "chunks",
                2,
            )
        return passed(streamed.chunks, "chunks", 2, ttft=round(streamed.first_token_seconds, 3))

    return Probe(name=f"stream:{model}", proves="tokens are streamed, up to [DONE]", check=check)
