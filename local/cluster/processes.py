"""The cluster's processes: each in a session of its own, with a log, and a record that no reused process id can fool."""

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from local.errors import LocalError

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Service:
    """A long-running program; `enter` is what to run it through, such as nsenter with a namespace.

    `configuration` is the text of its configuration file, so that a change of it counts as a change of the service.
    """

    name: str
    command: tuple[str, ...]
    enter: tuple[str, ...] = ()
    configuration: str = ""

    @property
    def fingerprint(self) -> str:
        """Changes with everything that a running process would have to be restarted for."""
        return hashlib.sha256(repr((self.command, self.enter, self.configuration)).encode()).hexdigest()


class Record(BaseModel):
    """What is kept of a started process; `born` is its start time in clock ticks since boot."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    born: int
    boot: str
    fingerprint: str


class Supervisor:
    """Starts and stops services whose records and logs are below one state folder."""

    def __init__(self, state: Path) -> None:
        self._records = state / "processes"
        self._logs = state / "logs"

    def ensure(self, service: Service) -> bool:
        """Start the service unless it runs just like that; returns whether it was started."""
        record = self._alive(service.name)
        if record is not None and record.fingerprint == service.fingerprint:
            return False
        self.stop(service.name)
        self._start(service)
        return True

    def running(self, name: str) -> int | None:
        """The service's process id, or None if it does not run."""
        record = self._alive(name)
        return record.pid if record else None

    def names(self) -> list[str]:
        """Every service that was started and not stopped, dead ones too."""
        return sorted(path.stem for path in self._records.glob("*.json"))

    def stop(self, *names: str, seconds: float = 5.0) -> None:
        """End the services: all are asked at once, and those that have not gone in time are killed with their sessions."""
        for record in self._living(names):
            os.kill(record.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self._living(names) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        for record in self._living(names):
            os.killpg(record.pid, signal.SIGKILL)
        for name in names:
            self._record_file(name).unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        """The service's log; the log of the run before it is beside it, ending in `.previous`."""
        return self._logs / f"{name}.log"

    def require(self, name: str) -> None:
        """Raises LocalError with the log's last line if the service has died."""
        if self._alive(name) is None:
            lines = (
                self.log(name).read_text(errors="replace").strip().splitlines()[-1:] if self.log(name).exists() else []
            )
            raise LocalError(f"{name} has stopped: {''.join(lines)[:400] or 'it said nothing'}; see {self.log(name)}")

    def _start(self, service: Service) -> None:
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self.log(service.name)
        if log.exists():
            log.replace(log.with_name(f"{log.name}.previous"))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*service.enter, *service.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )
        born = _born(process.pid)
        if born is not None:
            record = Record(pid=process.pid, born=born, boot=_boot(), fingerprint=service.fingerprint)
            partial = self._record_file(service.name).with_suffix(".partial")
            partial.write_text(record.model_dump_json())
            partial.replace(self._record_file(service.name))

    def _living(self, names: Iterable[str]) -> list[Record]:
        return [record for record in map(self._alive, names) if record is not None]

    def _alive(self, name: str) -> Record | None:
        try:
            record = Record.model_validate_json(self._record_file(name).read_text())
        except (FileNotFoundError, ValidationError):
            return None
        return record if record.boot == _boot() and _born(record.pid) == record.born else None

    def _record_file(self, name: str) -> Path:
        return self._records / f"{name}.json"


def _born(pid: int) -> int | None:
    """The process's start time, or None if there is no such process or it is a zombie."""
    try:
        # The name, in brackets, may hold spaces: fields are counted after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
