"""The channel's HTTP side: keys and quotas first, then faults, then an answer."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from smoke.channel.plan import ChannelPlan, Fault, KeyPlan
from smoke.channel.tokens import PrefixCache, logprobs, prompt_of, token

HANG_SECONDS = 3600


class Channel:
    """One running channel: its plan, which may be replaced at any time, and what it counted."""

    def __init__(self, plan: ChannelPlan) -> None:
        self.plan = plan
        self.cache = PrefixCache()
        self.requests: Counter[str] = Counter()
        """Accepted requests by key id."""
        self._chats = 0
        self._buckets: dict[str, tuple[float, float]] = {}
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _error_answer},
        )

    async def _models(self, request: Request) -> Response:
        self._admit(request)
        cards = [{"id": model, "object": "model", "owned_by": "moonstack"} for model in self.plan.models]
        return JSONResponse({"object": "list", "data": cards})

    async def _chat(self, request: Request) -> Response:
        self._admit(request)
        raw = await request.body()
        if len(raw) > self.plan.max_body_bytes:
            raise HTTPException(413, "the body is too large")
        body = _json_object(raw)
        if body.get("model") not in self.plan.models:
            raise HTTPException(404, f"the model {body.get('model')!r} does not exist")
        fault = self._fault(body["model"])
        if fault and fault.kind == "status":
            raise HTTPException(fault.status, "a fault that was asked for")
        if fault and fault.kind == "hang":
            await asyncio.sleep(HANG_SECONDS)
        if fault and fault.kind == "garbage":
            return Response("<html>502 Bad Gateway</html>", media_type="text/html")
        if self.plan.upstream:
            return await _passed_on(self.plan.upstream, raw)
        if body.get("stream"):
            return StreamingResponse(self._pieces(body, fault), media_type="text/event-stream")
        await self._prefill(body)
        return JSONResponse(whole_answer(body, fault))

    def _admit(self, request: Request) -> None:
        """Raises HTTPException for a request without a usable key, or with an exhausted one."""
        known = {key.value.get_secret_value(): key for key in self.plan.keys if key.enabled}
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        key = known.get(value) if scheme == "Bearer" else None
        if key is None:
            raise HTTPException(401, "the key is missing, malformed or unknown")
        if self._exhausted(key):
            raise HTTPException(429, "the key's quota is exhausted", headers={"Retry-After": "1"})
        self.requests[key.id] += 1

    def _exhausted(self, key: KeyPlan) -> bool:
        if key.requests is not None and self.requests[key.id] >= key.requests:
            return True
        if key.qps is None:
            return False
        now, burst = time.monotonic(), max(1.0, key.qps)
        tokens, then = self._buckets.get(key.id, (burst, now))
        tokens = min(burst, tokens + (now - then) * key.qps)
        self._buckets[key.id] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens < 1

    def _fault(self, model: str) -> Fault | None:
        self._chats += 1
        for fault in self.plan.faults:
            hit = math.floor(self._chats * fault.share) > math.floor((self._chats - 1) * fault.share)
            if hit and fault.model in (None, model):
                return fault
        return None

    async def _prefill(self, body: dict[str, Any]) -> None:
        prompt, salt = prompt_of(body), str(body.get("cache_salt", ""))
        seconds = self.plan.first_token_seconds
        if self.plan.prefill_tokens_per_second:
            known = self.cache.known(body["model"], prompt, salt) if self.plan.prefix_cache else 0
            seconds += (len(prompt) - known) / self.plan.prefill_tokens_per_second
        await asyncio.sleep(seconds)
        self.cache.add(body["model"], prompt, salt)

    async def _pieces(self, body: dict[str, Any], fault: Fault | None) -> AsyncIterator[str]:
        await self._prefill(body)
        prompt, count = prompt_of(body), int(body.get("max_tokens", 16))
        if fault and fault.kind == "buffered":
            text = "".join(token(body["model"], prompt, i) for i in range(count))
            yield _event(body, {"content": text})
            count = 0
        for position in range(count):
            if fault and fault.kind == "cut" and position >= count // 2:
                raise ConnectionError("a fault that was asked for")
            yield _event(body, {"content": token(body["model"], prompt, position)})
            await asyncio.sleep(self.plan.token_seconds)
        if (body.get("stream_options") or {}).get("include_usage"):
            yield f"data: {json.dumps({'model': body['model'], 'choices': [], 'usage': _usage(body)})}\n\n"
        if not fault or fault.kind != "no-done":
            yield "data: [DONE]\n\n"


def whole_answer(body: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
    """A chat completion that is not streamed; `ignore_eos` or not, it has as many tokens as were asked for."""
    model, prompt, count = body["model"], prompt_of(body), int(body.get("max_tokens", 16))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "".join(token(model, prompt, i) for i in range(count))},
        "finish_reason": "length",
    }
    if body.get("logprobs"):
        choice["logprobs"] = {"content": [logprobs(model, prompt, i) for i in range(count)]}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [] if fault and fault.kind == "no-choices" else [choice],
        "usage": _usage(body),
    }


def _usage(body: dict[str, Any]) -> dict[str, int]:
    prompt, count = len(prompt_of(body)), int(body.get("max_tokens", 16))
    return {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}


def _event(body: dict[str, Any], delta: dict[str, str]) -> str:
    chunk = {"object": "chat.completion.chunk", "model": body["model"], "choices": [{"index": 0, "delta": delta}]}
    return f"data: {json.dumps(chunk)}\n\n"


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return body


async def _passed_on(upstream: str, raw: bytes) -> Response:
    """The real engine's answer, piece by piece as it comes."""
    http = httpx.AsyncClient(base_url=upstream, timeout=300)
    request = http.build_request(
        "POST", "/v1/chat/completions", content=raw, headers={"Content-Type": "application/json"}
    )
    try:
        answer = await http.send(request, stream=True)
    except httpx.HTTPError as error:
        await http.aclose()
        raise HTTPException(502, f"the engine behind the channel does not answer: {type(error).__name__}") from None

    async def close() -> None:
        await answer.aclose()
        await http.aclose()

    media = answer.headers.get("content-type")
    return StreamingResponse(
        answer.aiter_bytes(), answer.status_code, media_type=media, background=BackgroundTask(close)
    )


async def _error_answer(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    body = {"error": {"message": error.detail, "type": "moonstack_channel", "code": str(error.status_code)}}
    return JSONResponse(body, error.status_code, headers=error.headers)
