"""Load on the gateway: closed loop (so many users, each waits for its answer) or open loop (so many a second, whatever happens)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from smoke.answers import Usage
from smoke.client import GatewayClient, chat_body
from smoke.errors import SmokeError
from smoke.prompts import nonce, prefix

STEP_SECONDS: Final = 0.2
REST_SECONDS: Final = 0.2
"""After a request that failed at once, so that a dead gateway is not hammered."""

Outcome = Literal["ok", "lost", "broken"]
"""lost: no answer began (refused, error status, no connection); broken: a stream that began and did not end."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request. Seconds since the load's start, and durations in seconds; no prompt, no answer."""

    began: float
    ended: float
    outcome: Outcome
    status: int
    first_token: float | None = None
    cause: str | None = None
    served_by: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What every user asks for; each prompt is new, so no cache answers for the engine."""

    model: str
    prompt_words: int = 60
    max_tokens: int = 32
    extra: tuple[tuple[str, Any], ...] = (("ignore_eos", True),)

    def body(self) -> dict[str, Any]:
        """A streamed chat request."""
        text = prefix(self.prompt_words, nonce())
        asked = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": self.max_tokens}
        return chat_body(self.model, text, **asked, **dict(self.extra))


class Load:
    """Sends requests and remembers how each one went."""

    def __init__(self, gateway: GatewayClient, request: Request) -> None:
        self._gateway = gateway
        self._request = request
        self._zero = time.monotonic()
        self.samples: list[Sample] = []
        self.open = 0

    @property
    def now(self) -> float:
        """Seconds since the load's start."""
        return time.monotonic() - self._zero

    async def closed(self, users: Callable[[float], int], seconds: float) -> None:
        """Keep `users(now)` users busy for so many seconds; requests that are open then are finished."""
        await self._while(users, lambda: self.now < seconds)

    async def closed_until(self, users: int, done: Awaitable[Any]) -> None:
        """Keep users busy until something else has ended."""
        waiting = asyncio.ensure_future(done)
        await self._while(lambda _: users, lambda: not waiting.done())
        await waiting

    async def arriving(self, rate: Callable[[float], float], seconds: float, most_open: int = 1000) -> None:
        """Send `rate(now)` requests a second, never more than `most_open` at once; the rest of the schedule is dropped."""
        due, tasks = 0.0, set[asyncio.Task[None]]()
        last = self.now
        while self.now < seconds:
            now = self.now
            due, last = due + rate(now) * (now - last), now
            while due >= 1:
                due -= 1
                if self.open < most_open:
                    task = asyncio.create_task(self._one())
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks)

    async def _while(self, users: Callable[[float], int], going: Callable[[], bool]) -> None:
        workers: list[asyncio.Task[None]] = []
        while going():
            while len(workers) < users(self.now):
                workers.append(asyncio.create_task(self._user(len(workers), users, going)))
            workers = [worker for worker in workers if not worker.done()]
            await asyncio.sleep(STEP_SECONDS)
        await asyncio.gather(*workers)

    async def _user(self, index: int, users: Callable[[float], int], going: Callable[[], bool]) -> None:
        while going() and index < users(self.now):
            await self._one()
            if self.samples[-1].outcome == "lost":
                await asyncio.sleep(REST_SECONDS)

    async def _one(self) -> None:
        began, self.open = self.now, self.open + 1
        try:
            streamed = await self._gateway.try_stream(self._request.body())
        except SmokeError as error:
            self.samples.append(Sample(began, self.now, "lost", 0, cause=error.cause))
            return
        finally:
            self.open -= 1
        if streamed.status != 200:
            self.samples.append(Sample(began, self.now, "lost", streamed.status, cause=streamed.text))
            return
        first_token = streamed.first_token_seconds if streamed.chunks else None
        outcome, cause = ("ok", None) if streamed.finished else ("broken", streamed.broke())
        self.samples.append(
            Sample(
                began, self.now, outcome, 200, first_token, cause, served_by=streamed.served_by, usage=streamed.usage
            )
        )
