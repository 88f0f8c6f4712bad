"""Folders of Python packages for pods, resolved for the Python of the base root file system and not for the host's."""

import shutil
import subprocess
import sys
from pathlib import Path

from local.errors import LocalError
from local.progress import Progress
from local.runtime import base, cache

PYTHON_VERSION = "3.11"
"""Of the base root file system."""

_PLATFORM = "x86_64-manylinux_2_36"  # glibc of Debian bookworm
_REQUIREMENTS = Path(__file__).parent / "requirements"
_VERSION = "1"


def digest(name: str) -> str:
    """Changes with the base and the hashed requirement file of that name."""
    return cache.key(_VERSION, base.digest(), PYTHON_VERSION, _PLATFORM, requirements(name).read_bytes())


def requirements(name: str) -> Path:
    """The hashed requirement file of a folder of packages."""
    return _REQUIREMENTS / f"{name}.txt"


def ensure(name: str, progress: Progress, *, skip_bytecode: str = "(?!)", extra: dict[str, str] | None = None) -> Path:
    """Have the packages of `requirements/<name>.txt` with bytecode, to be mounted or copied to /opt/<name>.

    `extra` adds files: relative path → text. Raises LocalError if a package can't be had.
    """
    root = base.ensure(progress)
    target = cache.runtime_dir() / f"{name}-{cache.key(digest(name), skip_bytecode, repr(extra))}"

    def build(partial: Path) -> None:
        install(name, partial)
        for path, text in (extra or {}).items():
            (partial / path).parent.mkdir(parents=True, exist_ok=True)
            (partial / path).write_text(text)
        base.compile_python(root, f"/opt/{name}", binds={f"/opt/{name}": partial}, skip=skip_bytecode)

    if not target.exists():
        with progress.phase(f"Python packages of {name}"):
            cache.ensure(target, build)
    return target


def install(name: str, target: Path) -> None:
    """Install a requirement file's wheels into a folder, without the scripts: those name the host's Python."""
    command = [uv(), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(target)]
    done = subprocess.run(
        [*command, *PLATFORM_OPTIONS, "--no-deps", "--require-hashes", "--requirement", str(requirements(name))],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalError(f"the Python packages of {name} can't be installed: {_cause(done.stderr)}")
    cache.remove(target / "bin")
    cache.remove(target / ".lock")


PLATFORM_OPTIONS = ("--python-version", PYTHON_VERSION, "--python-platform", _PLATFORM, "--only-binary", ":all:")
"""uv's options for wheels that run in the base; the requirement files are compiled with the same."""


def uv() -> str:
    """The uv of this Python's environment, or the one on PATH."""
    beside = Path(sys.prefix, "bin", "uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise LocalError("uv is not installed; run: make env")
    return found


def _cause(output: str) -> str:
    """uv ends with hints: the cause stands above them."""
    lines = [line.strip() for line in output.splitlines()]
    return next((line for line in lines if line.startswith("cause:")), base.last_line(output))
