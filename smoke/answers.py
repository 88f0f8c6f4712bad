"""What an OpenAI-compatible server answers, parsed; anything else is named, not tripped over."""

from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from smoke.errors import PermanentError

Model = TypeVar("Model", bound=BaseModel)


class Top(BaseModel):
    """One candidate for a position, with its natural log probability."""

    token: str
    logprob: float


class TokenChoice(Top):
    """The token taken at a position, and the best candidates."""

    top_logprobs: list[Top] = []


class Logprobs(BaseModel):
    content: list[TokenChoice] | None = None


class Message(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None


class Choice(BaseModel):
    message: Message = Message()
    delta: Message = Message()
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(BaseModel):
    """A chat completion, or one chunk of a streamed one."""

    model_config = ConfigDict(extra="ignore")

    choices: list[Choice]
    usage: Usage | None = None
    model: str | None = None

    def tokens(self) -> list[TokenChoice]:
        """The answer's tokens with log probabilities; empty when they weren't asked for."""
        first = self.choices[0].logprobs if self.choices else None
        return (first.content if first else None) or []


class ModelCard(BaseModel):
    id: str


class ModelList(BaseModel):
    data: list[ModelCard]


class ErrorDetail(BaseModel):
    message: str
    type: str | None = None
    code: str | int | None = None


class ErrorBody(BaseModel):
    """OpenAI's shape of an error, which client libraries read."""

    error: ErrorDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole HTTP answer; seconds from sending the request to its last byte."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0

    def parse(self, model: type[Model], what: str) -> Model:
        """The body as `model`. Raises PermanentError when it is something else."""
        return parse(self.body, model, what)

    def message(self) -> str:
        """The body's own error message, shortened; empty when it has none."""
        try:
            return ErrorBody.model_validate_json(self.body).error.message[:200]
        except ValidationError:
            return ""


def parse(body: bytes | str, model: type[Model], what: str) -> Model:
    """JSON text as `model`. Raises PermanentError when it is something else."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise PermanentError(
            f"{what}: the answer can't be parsed: {where}: {first['msg'].lower()}",
            "see what answers at the endpoint: a proxy's page, or an API that is not OpenAI-compatible",
        ) from None


def usage(body: bytes) -> Usage | None:
    """The tokens that an answer reports; None where it does not, or is no answer."""
    try:
        return Completion.model_validate_json(body).usage
    except ValidationError:
        return None


@dataclass(slots=True, kw_only=True)
class Streamed:
    """A streamed answer. Seconds from sending the request; `finished` only after `data: [DONE]`."""

    status: int
    first_token_seconds: float = 0.0
    seconds: float = 0.0
    text: str = ""
    chunks: int = 0
    finished: bool = False
    usage: Usage | None = None
    served_by: str = ""
    """Place and model that answered, such as channel/GLM-5; empty where the gateway does not say."""
    cut_by: str = ""
    """What the connection said when the stream broke off; empty when it was closed in order."""

    def broke(self) -> str:
        """How far a stream that did not end had come, and what ended it."""
        how = self.cut_by or "the end of the answer without [DONE]"
        return f"after {self.chunks} chunks and {self.seconds:.1f} s by {how}"
