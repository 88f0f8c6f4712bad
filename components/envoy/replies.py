"""Answers that the gateway gives by itself, in the form of the OpenAI API's errors."""

import json
from typing import Final

from components.envoy.schema import Json, extension, response_header

INVALID: Final = "invalid_request_error"


def error_body(message: str, kind: str, code: str | None) -> str:
    """The JSON text of an error."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}, ensure_ascii=False)


def direct(status: int, body: str) -> Json:
    """What a route answers without any upstream: the action and the content type."""
    return {
        "direct_response": {"status": status, "body": {"inline_string": body}},
        "response_headers_to_add": [response_header("content-type", "application/json")],
    }


def problem(status: int, message: str, code: str | None, kind: str = INVALID) -> Json:
    """A route's direct answer with an error."""
    return direct(status, error_body(message, kind, code))


def local_replies(prefix: str) -> Json:
    """Bodies for the answers of Envoy's own filters, by status; `prefix` keeps runtime keys of two listeners apart."""
    replies = [
        (400, "The request is not well-formed HTTP that this gateway takes.", INVALID, "bad_request"),
        (401, "Missing, malformed, unknown or expired API key (%RESPONSE_CODE_DETAILS%).", INVALID, "invalid_api_key"),
        (403, "This gateway changes no protocol and takes no other scheme than its own.", INVALID, "not_allowed"),
        (404, "Unknown request URL.", INVALID, "unknown_url"),
        (408, "The request did not arrive in time.", INVALID, "request_timeout"),
        (413, "The request body is too large.", INVALID, "request_too_large"),
        (426, "This gateway takes HTTP/1.1 and HTTP/2.", INVALID, "http_version"),
        (429, "Rate limit reached; try again after the seconds in Retry-After.", "rate_limit_error", "rate_limit_exceeded"),
        (431, "The request headers are too large.", INVALID, "headers_too_large"),
        (500, "The gateway could not handle the request.", "server_error", "internal_error"),
        (501, "This gateway takes no such transfer encoding.", INVALID, "not_implemented"),
        (502, "The model's server did not answer properly.", "server_error", "bad_gateway"),
        (503, "No server of this model could take the request; try again.", "server_error", "model_unavailable"),
        (504, "The model's server did not answer in time.", "server_error", "timeout"),
    ]  # fmt: skip
    return {"mappers": [_mapper(prefix, status, message, kind, code) for status, message, kind, code in replies]}


def with_status(prefix: str, status: int) -> Json:
    """Matches answers of one status."""
    comparison = {"op": "EQ", "value": {"default_value": status, "runtime_key": f"{prefix}.reply.{status}"}}
    return {"status_code_filter": {"comparison": comparison}}


def with_details(details: str, other: bool = False) -> Json:
    """Matches answers by Envoy's own reason, or all others."""
    return {
        "extension_filter": extension(
            "cel",
            "extensions.access_loggers.filters.cel.v3.ExpressionFilter",
            expression=f"response.code_details {'!=' if other else '=='} '{details}'",
        )
    }


def reply(message: str, kind: str, code: str) -> Json:
    """The body of an answer of Envoy's own."""
    return {
        "body_format_override": {
            "json_format": {"error": {"message": message, "type": kind, "code": code}},
            "content_type": "application/json",
        }
    }


def _mapper(prefix: str, status: int, message: str, kind: str, code: str) -> Json:
    worded_already = "direct_response"  # of a route
    filters = [with_status(prefix, status), with_details(worded_already, other=True)]
    return {"filter": {"and_filter": {"filters": filters}}, **reply(message, kind, code)}
