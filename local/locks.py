"""A lock that a killed `pulumi up` of the local stack left behind; a shared backend's locks are never touched."""

import json
import socket
from pathlib import Path

from local.progress import Progress


def clear_stale(backend: Path, progress: Progress) -> list[Path]:
    """Remove locks below a local backend folder whose process is gone; returns them."""
    stale = [lock for lock in (backend / ".pulumi" / "locks").rglob("*.json") if _is_stale(lock)]
    for lock in stale:
        progress.say(f"A killed run left its lock behind ({lock.name}); it is removed")
        lock.unlink(missing_ok=True)
    return stale


def _is_stale(lock: Path) -> bool:
    try:
        held = json.loads(lock.read_text())
        process = int(held["pid"])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        return True
    if held.get("hostname") not in (None, "", socket.gethostname()):
        return False
    try:
        return b"pulumi" not in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return True
