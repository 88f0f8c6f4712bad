"""The end of a process that only holds something: SIGTERM, waited for without a lock."""

import os
import signal
import sys
from types import FrameType


class Ending:
    """Before `ready` SIGTERM exits with 143, from then on it ends `wait`.

    A handler that sets a threading.Event can meet its own thread inside the Event's lock, and both stand still until the
    kubelet kills them; a byte in a pipe needs no lock.
    """

    def __init__(self) -> None:
        self.ready = False
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        signal.signal(signal.SIGTERM, self._handle)
        signal.set_wakeup_fd(write)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.ready:
            sys.exit(128 + number)

    def wait(self) -> None:
        """Return once SIGTERM has come, also if it came before."""
        os.read(self._read, 1)
