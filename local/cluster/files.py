"""Files that a running process may be watching."""

import os
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    """Write the text unless the file holds just that: kube-proxy ends, and containerd reloads, when theirs is touched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as target:
            target.write(text)
    return path
