"""A steady load of short calls and streams, and what became of it."""

import threading
from collections.abc import Callable
from typing import Any

import httpx


class Load:
    """Calls `ask` from a few threads until it is left; `failures` are the answers that were not right."""

    def __init__(self, ask: Callable[[httpx.Client], str | None], client: Callable[[], httpx.Client], threads: int = 3):
        self._ask, self._client = ask, client
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]
        self.done = 0
        self.failures: list[str] = []

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        with self._client() as client:
            while not self._stop.is_set():
                try:
                    failure = self._ask(client)
                except httpx.HTTPError as error:
                    failure = f"{type(error).__name__}: {error}"
                self.done += 1
                if failure:
                    self.failures.append(failure)
