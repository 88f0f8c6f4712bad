"""The Go compiler: old enough ones are named as such, and a build is run with its progress counted."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from local.errors import LocalError

FIRST_THAT_UPGRADES_ITSELF = (1, 21)
_HOW_TO_INSTALL = "install Go 1.21 or newer (go.dev/doc/install, or golang-go from Debian's backports)"


def wanted(module: Path) -> tuple[int, ...]:
    """The oldest Go that a module builds with, from the `go` line of its go.mod."""
    line = re.search(r"^go ([\d.]+)$", (module / "go.mod").read_text(), re.MULTILINE)
    if line is None:
        raise LocalError(f"{module / 'go.mod'} has no go line")
    return _numbers(line[1])


def require(modules: Sequence[Path]) -> None:
    """Check that the Go on PATH can build the modules; 1.21 and newer fetch the release that a module names.

    Raises LocalError naming the version found and the one needed.
    """
    oldest = max(wanted(module) for module in modules)
    needed = ".".join(map(str, oldest))
    if shutil.which("go") is None:
        raise LocalError(f"Go is not on PATH, and the tools are built with it: {_HOW_TO_INSTALL}")
    found, toolchain = _go_environment()
    if found >= oldest:
        return
    version = ".".join(map(str, found))
    if found < FIRST_THAT_UPGRADES_ITSELF:
        raise LocalError(f"Go {version} is too old, the tools need {needed}: {_HOW_TO_INSTALL}")
    if toolchain == "local":
        raise LocalError(
            f"Go {version} is too old, the tools need {needed}: unset GOTOOLCHAIN=local, then Go fetches it"
        )


def build(
    folder: Path, package: str, target: Path, flags: Sequence[str], static: bool, on_package: Callable[[], None]
) -> None:
    """Compile one package to `target`; `on_package` is called for each package that had to be compiled.

    Raises LocalError with the compiler's last lines.
    """
    command = ["go", "build", "-v", "-trimpath", "-buildvcs=false", *flags, "-o", str(target), package]
    environment = {**os.environ, "GOWORK": "off"} | ({"CGO_ENABLED": "0"} if static else {})
    said: list[str] = []
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as compiler:
        assert compiler.stderr is not None
        for line in compiler.stderr:
            if _is_package(line.strip()):
                on_package()
            else:
                said.append(line.rstrip())
    if compiler.returncode:
        raise LocalError(f"building {package} failed: {' | '.join(said[-3:]) or f'exit {compiler.returncode}'}")


def module_folder(folder: Path, module: str) -> Path:
    """Where Go keeps the source of a module that `folder`'s go.mod requires; it is downloaded if need be."""
    subprocess.run(["go", "mod", "download", module], cwd=folder, check=True, capture_output=True)
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", module], cwd=folder, check=True, capture_output=True, text=True
    )
    return Path(listed.stdout.strip())


def downloaded(module: str, version: str) -> Path:
    """The source of a module's version, from Go's cache or the module proxy; Go checks it against its checksum database.

    Raises LocalError with Go's own words.
    """
    if shutil.which("go") is None:
        raise LocalError(f"Go is not on PATH: {_HOW_TO_INSTALL}")
    asked = subprocess.run(
        ["go", "mod", "download", "-json", f"{module}@{version}"], cwd="/", capture_output=True, text=True, check=False
    )
    try:
        answer: dict[str, str] = json.loads(asked.stdout)
    except json.JSONDecodeError:
        answer = {"Error": asked.stderr.strip() or f"go mod download ended with {asked.returncode}"}
    if "Error" in answer:
        raise LocalError(" ".join(answer["Error"].split()))
    return Path(answer["Dir"])


def _go_environment() -> tuple[tuple[int, ...], str]:
    # Outside any module, so that Go reports itself and not the release that a go.mod makes it switch to.
    asked = subprocess.run(
        ["go", "env", "GOVERSION", "GOTOOLCHAIN"], cwd="/", capture_output=True, text=True, check=False
    ).stdout.splitlines()
    version, toolchain = [*asked, "", ""][:2]
    return _numbers(version.removeprefix("go")), toolchain


def _is_package(line: str) -> bool:
    return bool(re.fullmatch(r"[\w.~+-]+(/[\w.~+-]+)*", line))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
