"""What is written down of each request: one JSON line and a few metrics, without keys, prompts or answers."""

from typing import Final

from components.envoy.schema import (
    METADATA,
    MODEL_HEADER,
    SERVED_BY_HEADER,
    STREAM_HEADER,
    VERSION_HEADER,
    Json,
    extension,
)
from rules.envoy_keys import CLIENT_HEADER

USAGE: Final = "moonstack.usage"
"""Metadata namespace of the token counts that the answer reports."""
LEAST: Final = "moonstack.least"
"""Metadata namespace of what a client with a quota used at least, should the answer not tell: set by lua/meter.lua."""
KEY: Final = "moonstack.key"
"""Metadata namespace of who asks: the client's id, and the version of its key."""
ANSWER: Final = "moonstack.answer"
"""Metadata namespace of answers that a target gave with another status than 200: set by lua/answer.lua."""
ROUTE_MODEL: Final = f"%METADATA(ROUTE:{METADATA}:model)%"
"""The model that was found: what a caller asked for but nobody serves would make a metric a name each."""
_CALLER: Final = {"client": f"%DYNAMIC_METADATA({KEY}:client)%", "version": f"%DYNAMIC_METADATA({KEY}:version)%"}
_ANSWERED_CALLER: Final = {"client": f"%REQ({CLIENT_HEADER})%", "version": f"%REQ({VERSION_HEADER})%"}
"""The same of a request that a target answered: these headers, which cost a third of metadata, are the gateway's own by then.

Of what is refused earlier they are the caller's own words, who could make metrics of any name with them, or are not split yet.
"""
_SERVED_BY: Final = f"%RESP({SERVED_BY_HEADER})%"
_TAGS: Final = {"model": ROUTE_MODEL, "client": _CALLER["client"], "served_by": _SERVED_BY}
_ANSWERED: Final = {**_TAGS, "client": _ANSWERED_CALLER["client"]}
_NOT_HEALTH: Final = {"not_health_check_filter": {}}
_TOKENS: Final = {"prompt_tokens": "in", "completion_tokens": "out"}
_STREAMED: Final = (((), _TOKENS), (("response",), {"input_tokens": "in", "output_tokens": "out"}))
"""Where streamed answers tell what they used, and under which names: chat and completions, then the events of /v1/responses."""


def json_lines() -> list[Json]:
    """The access log on standard output; the path without its query, since a key may stand there.

    Two loggers, of which each request meets one: what is well answered is told who asked by headers, the rest by metadata.
    """
    return [{"filter": _well_answered(), **_line(_ANSWERED_CALLER)}, {"filter": _otherwise(), **_line(_CALLER)}]


def _line(caller: dict[str, str]) -> Json:
    fields = {
        "time": "%START_TIME%",
        "request_id": "%REQ(x-request-id)%",
        "method": "%REQ(:method)%",
        "path": "%PATH(NQ)%",
        "status": "%RESPONSE_CODE%",
        "flags": "%RESPONSE_FLAGS%",
        "reason": "%RESPONSE_CODE_DETAILS%",
        "client": caller["client"],
        "key_version": caller["version"],
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
    return extension(
        "envoy.access_loggers.stdout", "extensions.access_loggers.stream.v3.StdoutAccessLog",
        log_format={"json_format": fields},
    )  # fmt: skip


def request_metrics(latency: bool) -> list[Json]:
    """Requests by model, client, target and status, and by version of the key; when wanted, their duration and first byte.

    Answers of the gateway's own have neither. By version a request is counted with a key alone, in a counter of its own: versions would
    multiply the others, and a rotation only has to see whether the old one is still in use.
    """
    histograms = [
        {"stat": _stat("duration", _ANSWERED), "unit": "Milliseconds", "value_format": "%DURATION%"},
        {"stat": _stat("first_byte", _ANSWERED), "unit": "Milliseconds", "value_format": "%RESPONSE_DURATION%"},
    ]
    counted = [_count("requests", _ANSWERED | {"code": "%RESPONSE_CODE%"}), _count("key_requests", _ANSWERED_CALLER)]
    timed = {"histograms": histograms} if latency else {}
    versions = {"and_filter": {"filters": [_otherwise(), _present(KEY, "version")]}}
    return [
        {"filter": _well_answered(), **_stats(counters=counted, **timed)},
        {"filter": _otherwise(), **_stats(counters=[_count("requests", _TAGS | {"code": "%RESPONSE_CODE%"})])},
        {"filter": versions, **_stats(counters=[_count("key_requests", _CALLER)])},
        *([{"filter": _present(ANSWER, "by"), **_stats(**timed)}] if latency else []),
    ]


def token_metrics() -> list[Json]:
    """Tokens in and out by model, client and target; a logger each, as an answer may lack either count."""
    return [
        {
            "filter": _present(USAGE, key),
            **_stats(
                counters=[{"stat": _stat(name, _ANSWERED), "value_format": f"%DYNAMIC_METADATA({USAGE}:{key})%"}],
            ),
        }
        for name, key in _TOKENS.items()
    ]


def least_tokens() -> Json:
    """The same counters for those with a quota whose answer didn't say what it used: a caller that left, a target that is silent.

    Failed requests used nothing; one whose caller left before the answer began has no status, and is the last target's that was asked.
    """
    asked = {**_TAGS, "served_by": f"%UPSTREAM_METADATA({METADATA}:served_by)%"}
    counters = [
        {"stat": _stat(name, asked), "value_format": f"%DYNAMIC_METADATA({LEAST}:{key})%"}
        for name, key in _TOKENS.items()
    ]
    filters = [_status("LE", 299), _present(LEAST, "in"), _missing(USAGE, "in")]
    return {"filter": {"and_filter": {"filters": filters}}, **_stats(counters=counters)}


def facts() -> Json:
    """Who asks, and with which version of which key: the client's name is `<id>@<version>`."""
    return extension(
        "facts", "extensions.filters.http.header_to_metadata.v3.Config",
        request_rules=[
            _fact(CLIENT_HEADER, KEY, "client", _rewritten("@[0-9a-f]*", "")),
            _fact(CLIENT_HEADER, KEY, "version", _rewritten("^[^@]*@?([0-9a-f]*).*$", r"\1")),
        ],
    )  # fmt: skip


def streamed_usage() -> Json:
    """A filter that reads `usage` from streamed answers without holding them back; lua/usage.lua reads whole ones."""
    rules = [
        {
            "rule": {
                "selectors": [{"key": part} for part in (*above, "usage", name)],
                "on_present": {"metadata_namespace": USAGE, "key": key, "type": "NUMBER"},
            }
        }
        for above, counts in _STREAMED
        for name, key in counts.items()
    ]
    parser = extension("json", "extensions.content_parsers.json.v3.JsonContentParser", rules=rules)
    return extension(
        "streamed-usage", "extensions.filters.http.sse_to_metadata.v3.SseToMetadata",
        response_rules={"max_event_size": 1 << 20, "content_parser": parser},
    )  # fmt: skip


def _fact(header: str, namespace: str, key: str, more: Json) -> Json:
    return {
        "header": header,
        "on_header_present": {"metadata_namespace": namespace, "key": key, **more},
        "remove": False,
    }


def _rewritten(regex: str, substitution: str) -> Json:
    return {"regex_value_rewrite": {"pattern": {"regex": regex}, "substitution": substitution}}


def _stats(**metrics: list[Json]) -> Json:
    return extension(
        "envoy.access_loggers.stats", "extensions.access_loggers.stats.v3.Config", stat_prefix="moonstack", **metrics
    )


def _stat(name: str, tags: dict[str, str]) -> Json:
    return {"name": name, "tags": [{"name": tag, "value_format": value} for tag, value in tags.items()]}


def _count(name: str, tags: dict[str, str]) -> Json:
    return {"stat": _stat(name, tags), "value_fixed": 1}


def _well_answered() -> Json:
    """By a target, with 200: whoever asks for a model gets that from nobody else. As a filter, too, it costs a fraction of metadata."""
    return {"and_filter": {"filters": [_status("EQ", 200), _asked(True)]}}


def _otherwise() -> Json:
    """All other requests but health checks, those without a status, too, whose caller left first."""
    others = {"or_filter": {"filters": [_status("NE", 200), _asked(False)]}}
    return {"and_filter": {"filters": [others, _NOT_HEALTH]}}


def _asked(model: bool) -> Json:
    header = {"name": MODEL_HEADER, "present_match": True, **({} if model else {"invert_match": True})}
    return {"header_filter": {"header": header}}


def _status(op: str, value: int) -> Json:
    limit = {"default_value": value, "runtime_key": f"moonstack.status.{value}"}
    return {"status_code_filter": {"comparison": {"op": op, "value": limit}}}


def _present(namespace: str, key: str, wanted: bool = True) -> Json:
    matcher = {"filter": namespace, "path": [{"key": key}], "value": {"present_match": wanted}}
    return {"metadata_filter": {"matcher": matcher, "match_if_key_not_found": not wanted}}


def _missing(namespace: str, key: str) -> Json:
    return _present(namespace, key, wanted=False)
