"""Build a tool once per version into the cache; a half-written or broken binary is never taken for a good one."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.alone import alone
from local.progress import Progress
from local.tools import go, provider
from local.tools.catalogue import GoBuild
from settings.paths import cache_dir

_DIGEST_LENGTH = 12


def folder(build: GoBuild) -> Path:
    """Where the build's binaries are kept; the name changes with the version, the module's files and the flags."""
    digest = hashlib.sha256(repr((build.flags, build.static)).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        source = build.folder / name
        digest.update(source.read_bytes() if source.exists() else b"")
    return cache_dir() / "tools" / f"{build.module}-{build.version}-{digest.hexdigest()[:_DIGEST_LENGTH]}"


def is_good(build: GoBuild, binary: Path) -> bool:
    """Whether the binary is there and runs far enough to say its version."""
    if not binary.is_file():
        return False
    try:
        asked = subprocess.run([binary, *build.version_arguments], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def ensure(build: GoBuild, progress: Progress) -> None:
    """Build what is missing or broken; a second run at the same time waits for the first."""
    with _alone(build):
        for name, package in build.binaries.items():
            if not is_good(build, folder(build) / name):
                _build(build, name, package, progress)


def _build(build: GoBuild, name: str, package: str, progress: Progress) -> None:
    compiled = 0

    def count() -> None:
        nonlocal compiled
        compiled += 1

    with (
        progress.phase(f"{name} {build.version}", lambda: f"{compiled} packages compiled" if compiled else ""),
        tempfile.TemporaryDirectory(dir=folder(build), prefix=".build-") as scratch,
    ):
        source = build.folder
        if build.module == "provider":
            source = Path(scratch)
            provider.prepare(build, source)
        partial = Path(scratch, f"{name}.partial")
        go.build(source, package, partial, build.flags, build.static, count)
        os.replace(partial, folder(build) / name)


@contextmanager
def _alone(build: GoBuild) -> Iterator[None]:
    folder(build).mkdir(parents=True, exist_ok=True)
    with alone(folder(build) / ".lock"):
        yield
