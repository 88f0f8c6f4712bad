"""`pulumi up` in the background of a rehearsal."""

import os
import signal
import subprocess
import threading

from local.workspace import Workspace


class EngineRun:
    """`pulumi up` in the background; its output is kept for the case that it fails."""

    def __init__(self, here: Workspace) -> None:
        self._here = here
        self._process = here.start("up", "--yes", "--skip-preview")
        self._lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def alive(self) -> bool:
        """Whether Pulumi still works."""
        return self._process.poll() is None

    def ended_badly(self) -> bool:
        """Whether Pulumi ended with an error."""
        return self._process.poll() not in (None, 0)

    def last_lines(self) -> str:
        """The first errors that Pulumi printed, or its last lines."""
        errors = [line for line in self._lines if "error" in line.lower()] or self._lines[-5:]
        return " | ".join(errors[:5])

    def stop(self) -> None:
        """Interrupt Pulumi once, which lets it finish what it started, and end its group if it doesn't."""
        for attempt in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            if not self.alive():
                return
            os.killpg(self._process.pid, attempt)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                continue

    def destroy(self) -> None:
        """Cluster-scoped objects go by Pulumi; the namespace takes the rest with it."""
        self._here.run_quietly("destroy", "--yes", "--skip-preview")

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines += (line.rstrip() for line in self._process.stdout)
