"""The public routes: exact paths, exact model names, and a worded answer for everything else."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from components.envoy.clusters import composite, members
from components.envoy.plan import PublicModel
from components.envoy.replies import direct, problem
from components.envoy.schema import (
    METADATA,
    MODEL_HEADER,
    PAUSE_HEADER,
    SERVED_BY_HEADER,
    STREAM_HEADER,
    Json,
    extension,
    milliseconds,
    response_header,
    seconds,
    typed,
)
from rules.envoy_keys import CLIENT_HEADER, EXHAUSTED
from rules.timing import FIRST_BYTE_MARGIN_SECONDS
from settings.settings import Settings

CHAT: Final = "/v1/chat/completions"
OTHER_PATHS: Final = ("/v1/completions", "/v1/embeddings", "/v1/responses")
"""Pod of the cluster's own models; the channel offers chat alone."""
_RETRY_ON: Final = "connect-failure,refused-stream,reset-before-request,reset,retriable-status-codes"
HOST_TRIES: Final = 3
"""How often another router is looked for before one that has failed this request is taken again."""
_BODY_LIMIT: Final = 1 << 20


def route_configuration(models: Sequence[PublicModel], model_routes: Iterable[Json], group: str | None) -> Json:
    """The whole route table: `model_routes` between what is answered before a model is looked at, and what is left.

    `group` is the name that stands for all aliases, where there are any. Each request is held against the table twice, before its
    model is known and after: chat stands first, and what no model can take before it.
    """
    routes = list(model_routes)
    listed = [*(model.name for model in models), *([group] if group else [])]
    host = {
        "name": "public",
        "domains": ["*"],
        "routes": [
            _exhausted(),
            _ambiguous(),
            _encoded(),
            _without_model([CHAT]),
            *(route for route in routes if _is_chat(route)),
            *_model_list(listed),
            _wrong_method(),
            _without_model(OTHER_PATHS),
            *(route for route in routes if not _is_chat(route)),
            *_unknown_models(listed),
            _elsewhere(),
        ],
        "response_headers_to_remove": [
            "x-envoy-ratelimited",
            "x-envoy-upstream-service-time",
            "x-envoy-overloaded",
            PAUSE_HEADER,
        ],
    }
    return typed(
        "config.route.v3.RouteConfiguration",
        name="public",
        virtual_hosts=[host],
        max_direct_response_body_size_bytes=_BODY_LIMIT,
    )


def composites(settings: Settings, models: Sequence[PublicModel]) -> list[Json]:
    """The composite cluster of each route: all attempts for chat, those inside the cluster for other paths."""
    kthena = {model.name for model in settings.models if model.backend == "kthena"}
    return [
        composite(name, attempts, kthena=not {target.model for target in model.inside()}.isdisjoint(kthena))
        for model in models
        for name, attempts in (
            (composite_name(model), members(model)),
            (inside_name(model), _names_inside(model)),
        )
        if attempts
    ]


def model_routes(settings: Settings, model: PublicModel, more: Json) -> list[Json]:
    """Streamed and whole answers of one name: they differ in how long silence is borne. `more` goes into the routes of chat."""
    routes = []
    for stream in (True, False):
        action = route_action(settings, model, len(model.attempts), stream)
        routes.append(chat_route(model.name, stream, {"route": {**action, "cluster": composite_name(model)}, **more}))
        if inside := model.inside():
            action = route_action(settings, model, len(inside), stream)
            routes.append(_route(OTHER_PATHS, model.name, stream, {"route": {**action, "cluster": inside_name(model)}}))
    return routes


def chat_route(name: str, stream: bool, answer: Json) -> Json:
    """The route of chat for one public name."""
    return _route([CHAT], name, stream, answer)


def route_action(settings: Settings, model: PublicModel, attempts: int, stream: bool) -> Json:
    """Time limits and attempts of a route; its cluster is the caller's."""
    return {
        "priority": "HIGH",
        "timeout": "0s",
        "idle_timeout": seconds(model.longest + FIRST_BYTE_MARGIN_SECONDS),
        "retry_policy": retry_policy(settings, attempts, silence(settings, model, stream)),
    }


def _route(paths: Sequence[str], name: str, stream: bool, answer: Json) -> Json:
    matchers = [_equals(MODEL_HEADER, name), _equals(STREAM_HEADER, str(stream).lower())]
    return {
        "match": {**_paths(paths), "headers": [_method("POST"), *matchers]},
        "metadata": {"filter_metadata": {METADATA: {"model": name}}},
        "response_headers_to_add": [response_header(SERVED_BY_HEADER, f"%UPSTREAM_METADATA({METADATA}:served_by)%")],
        **answer,
    }


def silence(settings: Settings, model: PublicModel, stream: bool) -> float:
    """Seconds without a byte after which an attempt is given up.

    An answer that is not streamed has no first byte before its last: cutting it earlier would pay for it twice.
    """
    if not stream:
        return model.longest + FIRST_BYTE_MARGIN_SECONDS
    limits = {"cluster": settings.gateway.first_byte_seconds, "channel": settings.channel.read_timeout_ms / 1000}
    return max(limits[target.place] for target in model.attempts)


def retry_policy(settings: Settings, attempts: int, silent: float) -> Json:
    """Attempts count in total. Envoy jitters the backoff from 0 up to the step, so the numbers are an upper envelope.

    It adds up to half to a pause that an answer asks for, which therefore is heeded up to two thirds of the largest step.
    """
    retry = settings.channel.retry
    other_host = extension("previous", "extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate")
    return {
        "retry_on": _RETRY_ON,
        "retriable_status_codes": list(retry.retry_on_status),
        "num_retries": attempts - 1,
        "per_try_idle_timeout": seconds(silent),
        "retry_back_off": {
            "base_interval": milliseconds(retry.backoff_base_ms),
            "max_interval": milliseconds(retry.backoff_max_ms),
        },
        "rate_limited_retry_back_off": {
            "reset_headers": [{"name": PAUSE_HEADER, "format": "SECONDS"}],
            "max_interval": milliseconds(retry.backoff_max_ms * 2 // 3),
        },
        "retry_host_predicate": [other_host],
        "host_selection_retry_max_attempts": HOST_TRIES,
    }


def model_object(name: str) -> dict[str, Any]:
    """A model as `/v1/models` shows it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "moonstack"}


def composite_name(model: PublicModel) -> str:
    """The composite cluster of a public name's chat."""
    return f"model-{model.slug}"


def inside_name(model: PublicModel) -> str:
    """The composite cluster of those of its attempts that stay in the cluster."""
    return f"inside-{model.slug}"


def _names_inside(model: PublicModel) -> list[str]:
    return [name for name, target in zip(members(model), model.attempts, strict=True) if target.place == "cluster"]


def _exhausted() -> Json:
    used_up = {"name": CLIENT_HEADER, "string_match": {"suffix": EXHAUSTED}}
    return {
        "match": {"prefix": "/", "headers": [used_up]},
        **problem(429, "This key's tokens of the day are used up.", "insufficient_quota", "insufficient_quota"),
    }


def _model_list(listed: Sequence[str]) -> list[Json]:
    get = [_method("GET")]
    everything = json.dumps({"object": "list", "data": [model_object(name) for name in listed]})
    return [
        {"match": {"path": "/v1/models", "headers": get}, **direct(200, everything)},
        *(
            {"match": {"path": path, "headers": get}, **direct(200, json.dumps(model_object(name)))}
            for name in listed
            for path in sorted({f"/v1/models/{name}", f"/v1/models/{name.replace('/', '%2F')}"})
        ),
        {"match": {"prefix": "/v1/models/", "headers": get}, **_no_such_model(listed)},
    ]


def _is_chat(route: Json) -> bool:
    return bool(route["match"].get("path") == CHAT)


def _ambiguous() -> Json:
    """Envoy joins several hosts by a comma, and each server behind it might take another one.

    What has no model yet goes to no server, which spares it a look at its hosts.
    """
    headers = [
        {"name": MODEL_HEADER, "present_match": True},
        {"name": ":authority", "string_match": {"contains": ","}},
    ]
    return {"match": {"prefix": "/", "headers": headers}, **problem(400, "A request names one host.", "bad_request")}


def _encoded() -> Json:
    encoded = {"name": "content-encoding", "present_match": True}
    return {
        "match": {**_paths([CHAT, *OTHER_PATHS]), "headers": [encoded, _method("POST")]},
        **problem(415, "Send the body without content-encoding.", "unsupported_encoding"),
    }


def _without_model(paths: Sequence[str]) -> Json:
    no_model = {"name": MODEL_HEADER, "present_match": True, "invert_match": True}
    return {
        "match": {**_paths(paths), "headers": [no_model, _method("POST")]},
        **problem(400, "The body must be one JSON object with one plain string member `model`.", "invalid_body"),
    }


def _wrong_method() -> Json:
    return {
        "match": {**_paths([CHAT, *OTHER_PATHS]), "headers": [_method("POST", other=True)]},
        **problem(405, "This URL takes POST only.", "method_not_allowed"),
    }


def _unknown_models(listed: Sequence[str]) -> list[Json]:
    return [{"match": _paths([CHAT, *OTHER_PATHS]), **_no_such_model(listed)}]


def _no_such_model(listed: Sequence[str]) -> Json:
    names = ", ".join(listed)
    return problem(404, f"There is no such model on this path. Models: {names}.", "model_not_found")


def _elsewhere() -> Json:
    return {"match": {"prefix": "/"}, **problem(404, "Unknown request URL.", "unknown_url")}


def _paths(paths: Sequence[str]) -> Json:
    if len(paths) == 1:
        return {"path": paths[0]}
    return {"safe_regex": {"regex": "|".join(paths)}}


def _method(name: str, other: bool = False) -> Json:
    return {"name": ":method", "string_match": {"exact": name}, **({"invert_match": True} if other else {})}


def _equals(header: str, value: str) -> Json:
    return {"name": header, "string_match": {"exact": value}}
