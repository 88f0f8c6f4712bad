"""A refusal that is expected: its status, and a body that client libraries can read."""

from pydantic import ValidationError

from smoke.answers import Answer, ErrorBody
from smoke.probe import Outcome, failed, passed


def refused(answer: Answer, status: int, what: str, fix: str) -> Outcome:
    """Pass when the status is the expected one and the body has OpenAI's shape of an error."""
    if answer.status != status:
        return failed(f"{what} was answered with {answer.status}, not {status}", fix, answer.status, "status", status)
    try:
        ErrorBody.model_validate_json(answer.body)
    except ValidationError:
        return failed(
            f"{what} was answered with {status}, but without OpenAI's error body",
            "see what answers in front of the gateway; its own answers have the body",
            answer.status,
            "status",
            status,
        )
    return passed(answer.status, "status", status)
