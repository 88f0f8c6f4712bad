"""An async client of the gateway that measures: status, body, time to the first token."""

import json
import time
from collections.abc import AsyncIterable, Mapping
from typing import Any, Final

import httpx

from smoke.answers import Answer, Completion, Streamed, Usage, parse, usage
from smoke.errors import TemporaryError, from_status, from_transport

CHAT: Final = "/v1/chat/completions"
MODELS: Final = "/v1/models"
TARGET: Final = "moonstack-target"
"""Header by which a smoke key chooses who answers: cluster, channel or fallback; ignored from other keys."""
SERVED_BY: Final = "x-moonstack-served-by"
"""Header of an answer: place and model that gave it."""
TIMEOUTS: Final = httpx.Timeout(30, connect=5)


class GatewayClient:
    """Speaks to one base URL with one key, or with none or another where a probe says so."""

    def __init__(self, http: httpx.AsyncClient, key: str, paid: list[tuple[str, Usage | None]] | None = None) -> None:
        self._http = http
        self._key = key
        self.paid: list[tuple[str, Usage | None]] = [] if paid is None else paid
        """Who answered each chat, and its tokens, for the cost of a run; shared with clients of other keys."""

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return str(self._http.base_url)

    def with_key(self, key: str) -> "GatewayClient":
        """The same connection pool with another key."""
        return GatewayClient(self._http, key, self.paid)

    def authorization(self) -> dict[str, str]:
        """The header that carries the key."""
        return {"Authorization": f"Bearer {self._key}"}

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: AsyncIterable[bytes] | None = None,
    ) -> Answer:
        """One request; `headers` replace the key's header. Raises SmokeError when no answer comes."""
        started = time.monotonic()
        sent = self.authorization() if headers is None else dict(headers)
        try:
            response = await self._http.request(method, path, headers=sent, json=json, content=content)
        except httpx.HTTPError as error:
            raise from_transport(error, self.base_url) from None
        if path == CHAT and response.status_code == 200:
            self.paid.append((response.headers.get(SERVED_BY, ""), usage(response.content)))
        return Answer(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=response.content,
            seconds=time.monotonic() - started,
        )

    async def chat(self, model: str, prompt: str, **options: Any) -> Completion:
        """A whole chat answer of the cluster's own engines. Raises SmokeError on anything but 200 with choices."""
        headers = self.authorization() | {TARGET: "cluster"}
        answer = await self.send("POST", CHAT, headers=headers, json=chat_body(model, prompt, **options))
        if answer.status != 200:
            raise from_status(answer.status, answer.message(), f"a chat with {model}")
        return answer.parse(Completion, f"a chat with {model}")

    async def stream(self, model: str, prompt: str, **options: Any) -> Streamed:
        """A streamed chat answer of the cluster's own engines. Raises SmokeError on a status other than 200 or a stream that breaks off."""
        body = chat_body(model, prompt, stream=True, stream_options={"include_usage": True}, **options)
        streamed = await self.try_stream(body, {TARGET: "cluster"})
        if streamed.status != 200:
            raise from_status(streamed.status, streamed.text, f"a streamed chat with {model}")
        if not streamed.finished:
            raise TemporaryError(
                f"a streamed chat with {model} broke off {streamed.broke()}",
                "see whether a pod ended just then; run python -m smoke drill",
            )
        return streamed

    async def try_stream(self, body: Mapping[str, Any], more: Mapping[str, str] | None = None) -> Streamed:
        """A stream as it came, also a refused or a cut one. Raises SmokeError only when no answer begins."""
        started = time.monotonic()
        streamed = Streamed(status=0)
        try:
            async with self._http.stream(
                "POST", CHAT, headers=self.authorization() | dict(more or {}), json=dict(body)
            ) as response:
                streamed.status = response.status_code
                streamed.served_by = response.headers.get(SERVED_BY, "")
                if response.status_code != 200:
                    answer = Answer(status=response.status_code, body=await response.aread())
                    streamed.text = answer.message()
                    return streamed
                async for line in response.aiter_lines():
                    _take(streamed, line, time.monotonic() - started)
        except httpx.HTTPError as error:
            if streamed.status == 0:
                raise from_transport(error, self.base_url) from None
            streamed.cut_by = type(error).__name__
        finally:
            streamed.seconds = time.monotonic() - started
            if streamed.status == 200:
                self.paid.append((streamed.served_by, streamed.usage))
        return streamed


def chat_body(model: str, prompt: str, **options: Any) -> dict[str, Any]:
    """The body of a deterministic chat request: one user message, temperature 0, unless `options` say otherwise."""
    return {"model": model, "messages": [{"role": "user", "content": prompt}], "temperature": 0, **options}


def _take(streamed: Streamed, line: str, seconds: float) -> None:
    if not line.startswith("data:"):
        return
    data = line.removeprefix("data:").strip()
    if data == "[DONE]":
        streamed.finished = True
        return
    chunk = parse(data, Completion, "a chunk of a stream")
    streamed.usage = chunk.usage or streamed.usage
    if not chunk.choices:
        return
    if streamed.chunks == 0:
        streamed.first_token_seconds = seconds
    streamed.chunks += 1
    streamed.text += chunk.choices[0].delta.content or ""


def dumps(body: Any) -> bytes:
    """A JSON body as bytes, for requests whose exact bytes matter."""
    return json.dumps(body).encode()
