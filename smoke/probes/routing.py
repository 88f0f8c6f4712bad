"""Only what is declared is served: exact model names, a list equal to the declaration, and no engine path from outside."""

from collections.abc import AsyncIterator
from typing import Final

from settings.settings import Settings
from smoke.answers import ModelList
from smoke.client import CHAT, MODELS, chat_body, dumps
from smoke.errors import from_status
from smoke.probe import LiveStack, Outcome, Probe, failed, passed
from smoke.probes.refusal import refused

ENGINE_PATHS: Final = ("/metrics", "/tokenize", "/invocations", "/pooling", "/score", "/sleep", "/v1/load_lora_adapter")
"""Open on an engine even with an API key set (vllm-project/vllm#18892); the gateway must not pass them on."""


def probes(settings: Settings) -> list[Probe]:
    """404 for what is not declared, 413 for what is too large, and the list."""
    name = settings.models[0].name if settings.models else "none"
    limit = settings.gateway.max_body_bytes
    return [
        Probe(name="models", proves="/v1/models lists the declared names, no more and no less", check=_models),
        Probe(name="404:model", proves="an unknown model is answered with 404", check=_unknown_model),
        Probe(name="404:path", proves="an unknown path is answered with 404", check=_unknown_path),
        Probe(name="404:engine-paths", proves="paths of the engine alone are closed", check=_engine_paths),
        _too_large(name, limit),
    ]


def declared_names(settings: Settings) -> set[str]:
    """Every name that the gateway must list: models served here or at the channel, aliases that have a place, and their group."""
    served = {model.name for model in settings.models}
    entries = settings.channel_models.models
    outside = settings.channel.enabled
    aliases = {entry.alias for entry in entries if outside or (entry.in_cluster or entry.model_name) in served}
    group = {settings.channel_models.group} if aliases else set()
    return served | aliases | group | ({entry.model_name for entry in entries} if outside else set())


async def _models(stack: LiveStack) -> Outcome:
    answer = await stack.gateway.send("GET", MODELS)
    if answer.status != 200:
        raise from_status(answer.status, answer.message(), MODELS)
    listed = {card.id for card in answer.parse(ModelList, MODELS).data}
    declared = declared_names(stack.settings)
    if listed == declared:
        return passed(len(listed), "models", len(declared))
    parts = [
        f"{label}: {', '.join(sorted(names))}"
        for label, names in (("missing", declared - listed), ("not declared", listed - declared))
        if names
    ]
    return failed(
        f"/v1/models differs from the declaration; {'; '.join(parts)}",
        "run pulumi up, so that the gateway has the current names",
        len(listed & declared),
        "models",
        len(declared),
    )


async def _unknown_model(stack: LiveStack) -> Outcome:
    body = chat_body("no-such-model-moonstack", "x", max_tokens=1)
    answer = await stack.gateway.send("POST", CHAT, json=body)
    return refused(
        answer, 404, "an unknown model", "the gateway routes by something other than exact names: run pulumi up"
    )


async def _unknown_path(stack: LiveStack) -> Outcome:
    answer = await stack.gateway.send("GET", "/v1/no-such-path")
    return refused(answer, 404, "an unknown path", "the gateway's list of paths is not in force: run pulumi up")


async def _engine_paths(stack: LiveStack) -> Outcome:
    for path in ENGINE_PATHS:
        answer = await stack.gateway.send("GET", path)
        if answer.status != 404:
            return failed(
                f"{path} was answered with {answer.status}: an engine's own path is open to callers",
                "expose only the gateway, and keep its list of paths: run pulumi up",
                answer.status,
                "status",
                404,
            )
    return passed(404, "status", 404)


async def _body(model: str, size: int) -> AsyncIterator[bytes]:
    """A chat body of so many bytes, sent without its length: the gateway has read nearly all of it when it refuses.

    With a length it would refuse at once and close, and the answer be lost while we still write.
    """
    empty = dumps(chat_body(model, "", max_tokens=1))
    yield dumps(chat_body(model, "x" * (size - len(empty)), max_tokens=1))


def _too_large(model: str, limit: int) -> Probe:
    async def check(stack: LiveStack) -> Outcome:
        headers = stack.gateway.authorization() | {"Content-Type": "application/json"}
        answer = await stack.gateway.send("POST", CHAT, headers=headers, content=_body(model, limit + 1))
        return refused(
            answer, 413, f"a body of {limit + 1} bytes", "gateway.maxBodyBytes is not in force: run pulumi up"
        )

    return Probe(name="413", proves="a body over gateway.maxBodyBytes is answered with 413", check=check)
