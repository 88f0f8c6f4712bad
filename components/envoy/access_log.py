"""What is written down of each request: one JSON line and a few metrics, without keys, prompts or answers."""

from typing import Final

from components.envoy.schema import METADATA, MODEL_HEADER, SERVED_BY_HEADER, STREAM_HEADER, Json, extension
from rules.envoy_keys import CLIENT_HEADER

USAGE: Final = "moonstack.usage"
"""Metadata namespace of the token counts that the answer reports."""
KEY: Final = "moonstack.key"
"""Metadata namespace of the version of the caller's key, as lua/version.lua writes it."""
ROUTE_MODEL: Final = f"%METADATA(ROUTE:{METADATA}:model)%"
"""The model that was found: what a caller asked for but nobody serves would make a metric a name each."""
_CLIENT: Final = f"%REQ({CLIENT_HEADER})%"
_VERSION: Final = f"%DYNAMIC_METADATA({KEY}:version)%"
_SERVED_BY: Final = f"%RESP({SERVED_BY_HEADER})%"
_TAGS: Final = {"model": ROUTE_MODEL, "client": _CLIENT, "served_by": _SERVED_BY}
_NOT_HEALTH: Final = {"not_health_check_filter": {}}
_FROM_UPSTREAM: Final = {
    "extension_filter": extension(
        "cel",
        "extensions.access_loggers.filters.cel.v3.ExpressionFilter",
        expression="response.code_details == 'via_upstream'",
    )
}
"""Answers that an upstream gave: only they have a first byte."""
_TOKENS: Final = {"prompt_tokens": "in", "completion_tokens": "out"}


def json_line() -> Json:
    """The access log on standard output; the path without its query, since a key may stand there."""
    fields = {
        "time": "%START_TIME%",
        "request_id": "%REQ(x-request-id)%",
        "method": "%REQ(:method)%",
        "path": "%PATH(NQ)%",
        "status": "%RESPONSE_CODE%",
        "flags": "%RESPONSE_FLAGS%",
        "reason": "%RESPONSE_CODE_DETAILS%",
        "client": _CLIENT,
        "key_version": _VERSION,
        "model": f"%REQ({MODEL_HEADER})%",
        "stream": f"%REQ({STREAM_HEADER})%",
        "served_by": _SERVED_BY,
        "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
        "milliseconds": "%DURATION%",
        "first_byte_milliseconds": "%RESPONSE_DURATION%",
        "bytes_in": "%BYTES_RECEIVED%",
        "bytes_out": "%BYTES_SENT%",
        "tokens_in": f"%DYNAMIC_METADATA({USAGE}:in)%",
        "tokens_out": f"%DYNAMIC_METADATA({USAGE}:out)%",
    }
    line = extension(
        "envoy.access_loggers.stdout", "extensions.access_loggers.stream.v3.StdoutAccessLog",
        log_format={"json_format": fields},
    )  # fmt: skip
    return {"filter": _NOT_HEALTH, **line}


def request_metrics(latency: bool) -> list[Json]:
    """Requests by model, client, target and status, and by version of the key; when wanted, their duration and first byte."""
    counters = [{"stat": _stat("requests", _TAGS | {"code": "%RESPONSE_CODE%"}), "value_fixed": 1}]
    histograms = [
        {"stat": _stat("duration", _TAGS), "unit": "Milliseconds", "value_format": "%DURATION%"},
        {"stat": _stat("first_byte", _TAGS), "unit": "Milliseconds", "value_format": "%RESPONSE_DURATION%"},
    ]
    every = {"filter": _NOT_HEALTH, **_stats(counters=counters)}
    return [every, _key_requests(), *([{"filter": _FROM_UPSTREAM, **_stats(histograms=histograms)}] if latency else [])]


def token_metrics() -> list[Json]:
    """Tokens in and out by model, client and target; a logger each, as an answer may lack either count."""
    return [
        {
            "filter": _present(USAGE, key),
            **_stats(
                counters=[{"stat": _stat(name, _TAGS), "value_format": f"%DYNAMIC_METADATA({USAGE}:{key})%"}],
            ),
        }
        for name, key in _TOKENS.items()
    ]


def token_readers() -> list[Json]:
    """Filters that read `usage` from plain and from streamed answers; neither holds the stream back."""
    rules = [
        {
            "selectors": [{"key": "usage"}, {"key": name}],
            "on_present": {"metadata_namespace": USAGE, "key": key, "type": "NUMBER"},
        }
        for name, key in _TOKENS.items()
    ]
    parser = extension(
        "json", "extensions.content_parsers.json.v3.JsonContentParser", rules=[{"rule": rule} for rule in rules]
    )
    return [
        extension(
            "usage", "extensions.filters.http.json_to_metadata.v3.JsonToMetadata", response_rules={"rules": rules}
        ),
        extension(
            "streamed-usage", "extensions.filters.http.sse_to_metadata.v3.SseToMetadata",
            response_rules={"max_event_size": 1 << 20, "content_parser": parser},
        ),
    ]  # fmt: skip


def _stats(**metrics: list[Json]) -> Json:
    return extension(
        "envoy.access_loggers.stats", "extensions.access_loggers.stats.v3.Config", stat_prefix="moonstack", **metrics
    )


def _stat(name: str, tags: dict[str, str]) -> Json:
    return {"name": name, "tags": [{"name": tag, "value_format": value} for tag, value in tags.items()]}


def _key_requests() -> Json:
    """By it a rotation sees whether the old version is still in use; a counter of its own, as versions would multiply the others."""
    counter = {"stat": _stat("key_requests", {"client": _CLIENT, "version": _VERSION}), "value_fixed": 1}
    return {"filter": _present(KEY, "version"), **_stats(counters=[counter])}


def _present(namespace: str, key: str) -> Json:
    matcher = {"filter": namespace, "path": [{"key": key}], "value": {"present_match": True}}
    return {"metadata_filter": {"matcher": matcher, "match_if_key_not_found": False}}
