"""Progress of long work: each phase with its time, readable on a terminal and in a log."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

HEARTBEAT_SECONDS = 30.0


class Progress:
    """Prints one line as a phase ends, and one every half minute while it lasts; everything goes to stderr."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Print a line that belongs to no phase."""
        self._console.print(line, markup=False)

    @contextmanager
    def phase(self, name: str, detail: Callable[[], str] = str) -> Iterator[None]:
        """Time what runs inside; `detail` gives what to add to the lines, such as a count, and is asked from a thread."""
        started = time.monotonic()
        ended = threading.Event()
        beat = threading.Thread(target=self._beat, args=(name, started, detail, ended), daemon=True)
        beat.start()
        try:
            yield
        except BaseException:
            self.say(f"  ✗ {name}{_suffix(detail)}, failed after {_seconds(started)}")
            raise
        else:
            self.say(f"  ✓ {name}{_suffix(detail)}, {_seconds(started)}")
        finally:
            ended.set()
            beat.join()

    def _beat(self, name: str, started: float, detail: Callable[[], str], ended: threading.Event) -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            self.say(f"  … {name}{_suffix(detail)}, {_seconds(started)} so far")


def _suffix(detail: Callable[[], str]) -> str:
    text = detail()
    return f" ({text})" if text else ""


def _seconds(started: float) -> str:
    seconds = time.monotonic() - started
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"
