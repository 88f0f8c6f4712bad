"""The filters that a client's request passes, in order."""

from pathlib import Path
from typing import Final

from components.envoy import access_log, limits
from components.envoy.schema import Json, Pod, extension, from_file
from rules import envoy_keys
from settings.settings import Settings

HEALTH_PATH: Final = "/healthz"
CHOOSE: Final = "choose"
OUTWARD: Final = ("content-type", "content-length", "accept", "user-agent", "idempotency-key", "openai-beta")
"""All of a caller's headers that the channel sees."""
_LUA: Final = Path(__file__).parent / "lua"


def public(settings: Settings, pod: Pod) -> list[Json]:
    """Health, flood limit, key, its client and version, its limit, body size, model, token counts."""
    return [
        health_check(),
        limits.address_limit(settings),
        from_ecds(envoy_keys.FILTER, envoy_keys.FILTER_TYPE, pod.keys, envoy_keys.FILE),
        access_log.facts(),
        from_ecds(limits.FILTER, limits.FILTER_TYPE, pod.config, "limits.yaml"),
        extension(
            "body-size", "extensions.filters.http.body_size_limit.v3.BodySizeLimit",
            max_request_bytes=settings.gateway.max_body_bytes,
        ),
        lua("model", pick_source(settings)),
        *([_choose()] if settings.channel.moe.routing_strategy == "latency_optimized" else []),
        *([access_log.streamed_usage()] if settings.channel_models.observability.record_token_usage else []),
    ]  # fmt: skip


def _choose() -> Json:
    """Runs on the routes that name it; where none does, it would still cost each request."""
    return extension(
        CHOOSE, "extensions.filters.http.lua.v3.Lua", source_codes={CHOOSE: {"inline_string": _script("choose")}}
    )


def health_check() -> Json:
    """200 without a key while the gateway serves, 503 from the moment it drains."""
    path = [{"name": ":path", "string_match": {"exact": HEALTH_PATH}}]
    return extension(
        "health", "extensions.filters.http.health_check.v3.HealthCheck", pass_through_mode=False, headers=path
    )


def from_ecds(name: str, type_url: str, folder: str, file: str) -> Json:
    """A filter whose configuration is a file of its own; the listener stays shut until it is there."""
    return {"name": name, "config_discovery": {"config_source": from_file(folder, file), "type_urls": [type_url]}}


def lua(name: str, source: str) -> Json:
    """A Lua filter with its program inline, so that listener and program are one version."""
    return extension(name, "extensions.filters.http.lua.v3.Lua", default_source_code={"inline_string": source})


def pick_source(settings: Settings) -> str:
    """The program that finds a request's model and, when wanted, counts the tokens of answers: a filter costs as much as both."""
    clients = ",".join(f"['{client}']=true" for client in metered(settings))
    observability = settings.channel_models.observability
    recorded, timed = observability.record_token_usage, observability.record_latency_per_model
    constants = (
        f"local ISOLATE = {_isolated(settings)}\nlocal METERED = {f'{{{clients}}}' if clients else 'nil'}\n"
        f"local RECORDED, TIMED = {str(recorded).lower()}, {str(timed).lower()}\n"
    )
    answer = [*(["usage"] if recorded else []), *(["answer"] if recorded or timed else [])]
    parts = ["body", *(["meter"] if clients else []), *answer, "pick"]
    return constants + "\n".join(_script(part) for part in parts)


def target_source(settings: Settings, outside: bool) -> str:
    """The program that puts the chosen target's name of the model into a request."""
    unsalt = _isolated(settings) if outside else "false"
    passes = f"{{{','.join(f'[{name!r}]=true' for name in OUTWARD)}}}" if outside else "nil"
    return f"{_script('body')}\nlocal UNSALT = {unsalt}\nlocal PASSES = {passes}\n{_script('target')}"


def metered(settings: Settings) -> list[str]:
    """Clients that have a quota of a day, or whose outbound key has one: what they use is counted without their help."""
    limited = {key.id for key in settings.keys.keys if key.has_quota}
    return [
        key.id
        for key in settings.keys.keys
        if not key.outbound and limited & {key.id, key.channel_key or settings.channel.key}
    ]


def _isolated(settings: Settings) -> str:
    return str(settings.gateway.cache_isolation == "perKey").lower()


def channel_answer_source() -> str:
    """The program that words the channel's refusals for our callers."""
    return _script("channel_answer")


def router_answer_source() -> str:
    """The program that words what Kthena's router says of itself, with the status that it means."""
    return _script("router_answer")


def _script(name: str) -> str:
    return (_LUA / f"{name}.lua").read_text()
