"""The tool chain: what is on PATH where it fits, else what is built once into the cache."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from local.errors import LocalError
from local.progress import Progress
from local.tools import build, go, language_host_launcher
from local.tools.catalogue import BUILD_OF, DEFAULT, LANGUAGE_HOST, OLDEST_PULUMI, PYTHON_TOOLS, GoBuild
from settings.paths import cache_dir

_PROVIDER = "pulumi-resource-kubernetes"


def ensure(names: Iterable[str] = DEFAULT, progress: Progress | None = None) -> None:
    """Make every named tool ready to run, and link it into `bin_dir()`; what is missing or broken is built.

    Raises LocalError if there is no such tool, Go is too old, a build fails, or a wheel's program is not installed.
    """
    progress = progress or Progress()
    names = list(names)
    known = {*BUILD_OF, *PYTHON_TOOLS, LANGUAGE_HOST}
    if unknown := [name for name in names if name not in known]:
        raise LocalError(f"{unknown[0]} is no tool of ours; choose among: {', '.join(sorted(known))}")
    missing = to_build(names)
    if missing:
        go.require([one.folder for one in missing])
        minutes = sum(one.minutes for one in missing)
        progress.say(
            f"Tools to build: {', '.join(one.module for one in missing)}; up to {minutes:.0f} min on two cores"
        )
    for one in missing:
        build.ensure(one, progress)
    if LANGUAGE_HOST in names and language_host_launcher.official(bin_dir()) is None:
        language_host_launcher.install(build.folder(BUILD_OF["pulumi"]), bin_dir())
    _link(names)


def to_build(names: Iterable[str]) -> list[GoBuild]:
    """The builds that `ensure` would do for these tools; a built tool counts only if it runs."""
    wanted: dict[str, GoBuild] = {}
    for name in names:
        if name in BUILD_OF and _on_path(name) is None and not _comes_with_pulumi(name):
            one = BUILD_OF[name]
            if not build.is_good(one, build.folder(one) / name):
                wanted[one.module] = one
    return list(wanted.values())


def path(name: str) -> Path:
    """The program to run for a tool's name.

    Raises LocalError if it has not been built or installed yet.
    """
    found = find(name)
    if found is None:
        remedy = "make .venv" if name in PYTHON_TOOLS else "python -m local tools"
        raise LocalError(f"{name} is not there yet; run: {remedy}")
    return found


def find(name: str) -> Path | None:
    """As `path`, but None for a tool that is not there; a build is not looked into, `ensure` does that."""
    if name == LANGUAGE_HOST:
        ours = bin_dir() / LANGUAGE_HOST
        return language_host_launcher.official(bin_dir()) or (ours if ours.exists() else None)
    if name in PYTHON_TOOLS:
        beside = Path(sys.prefix, "bin", name)
        return beside if beside.exists() else _which(name)
    if (own := _on_path(name)) is not None:
        return own
    built = build.folder(BUILD_OF[name]) / name
    return built if built.exists() else None


def run(command: Sequence[str], **environment: str) -> None:
    """Run a program with the tools on its PATH, its output going to the user's terminal.

    Raises LocalError if it fails.
    """
    variables = {**os.environ, "PATH": search_path(), **environment}
    done = subprocess.run(command, env=variables, check=False)
    if done.returncode:
        raise LocalError(f"{Path(command[0]).name} {' '.join(command[1:3])} failed with exit code {done.returncode}")


def bin_dir() -> Path:
    """A folder of links to the tools; it holds nothing that the user's own PATH already provides."""
    return cache_dir() / "tools" / "bin"


def search_path() -> str:
    """PATH for programs that call the tools: this environment's own programs, the tools, then the user's PATH."""
    return os.pathsep.join([str(Path(sys.prefix, "bin")), str(bin_dir()), os.environ.get("PATH", os.defpath)])


def own_pulumi() -> Path | None:
    """The user's own Pulumi on PATH, if it is new enough; it brings its own language host and finds its own provider."""
    return _on_path("pulumi")


def _comes_with_pulumi(name: str) -> bool:
    return name == _PROVIDER and own_pulumi() is not None


def _link(names: Iterable[str]) -> None:
    bin_dir().mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in BUILD_OF:
            link, found = bin_dir() / name, build.folder(BUILD_OF[name]) / name
            link.unlink(missing_ok=True)
            if _on_path(name) is None and found.exists() and not _comes_with_pulumi(name):
                link.symlink_to(found)


def _on_path(name: str) -> Path | None:
    """The user's own binary, where its version fits: exactly the pinned one, or a new enough Pulumi."""
    found = _which(name) if name not in (_PROVIDER, "pause") else None
    if found is None:
        return None
    one = BUILD_OF[name]
    said = subprocess.run([found, *one.version_arguments], capture_output=True, text=True, timeout=30, check=False)
    version = re.search(r"\d+\.\d+\.\d+", said.stdout)
    if version is None:
        return None
    if name == "pulumi":
        return found if _key(version[0]) >= _key(OLDEST_PULUMI) else None
    return found if version[0] == one.version else None


def _which(name: str) -> Path | None:
    ours = {bin_dir(), Path(sys.prefix, "bin")}
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder) not in ours]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return Path(found) if found else None


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
