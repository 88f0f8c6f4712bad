"""Images for a registry: built from `images/` with buildah or docker, pushed, and named by digest for a stack file."""

import json
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
import yaml
from rich.console import Console

from local.errors import LocalError
from local.workspace import CHECKOUT
from rules.chips import Arch
from rules.versions import ENGINES, OWN_ARCHITECTURES

OWN: Final = ("gateway", "router", "mooncake", "capacity")
BASE: Final = "localhost/moonstack/base"
_ARCHITECTURES: Final[dict[str, Arch]] = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64"}


@dataclass(frozen=True)
class Build:
    """One image: its Containerfile, what is passed to it, and the architectures that its parts exist for."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    architectures: tuple[Arch, ...] = OWN_ARCHITECTURES

    @property
    def containerfile(self) -> Path:
        """Its Containerfile in the checkout."""
        return CHECKOUT / "images" / self.name / "Containerfile"


def builds(names: Iterable[str] = ()) -> list[Build]:
    """The images of that name, or all that a production stack can run. Raises LocalError for an unknown name."""
    known = {name: Build(name) for name in OWN}
    for name, engine in ENGINES.items():
        arguments = (("BASE", engine.base), ("MOONCAKE", engine.mooncake)) if engine.base else ()
        known[name] = Build(name, arguments, engine.architectures)
    wanted = list(names) or [name for name in known if name != "engine-cpu"]
    if unknown := [name for name in wanted if name not in known]:
        raise LocalError(f"{unknown[0]} is no image; there are: {', '.join(known)}")
    return [known[name] for name in wanted]


def commands(tool: str, build: Build, target: str, digest_file: Path) -> list[list[str]]:
    """How a tool builds an image for this machine's architecture and pushes it; the digest lands in a file."""
    passed = [part for name, value in build.arguments for part in ("--build-arg", f"{name}={value}")]
    here = ["--file", str(build.containerfile), *passed, "--tag", target, str(CHECKOUT)]
    if tool == "docker":
        return [["docker", "buildx", "build", "--push", "--metadata-file", str(digest_file), *here]]
    return [[tool, "build", *here], [tool, "push", "--digestfile", str(digest_file), target]]


def publish(registry: str, tag: str, names: Iterable[str], console: Console) -> dict[str, str]:
    """Build and push; returns image name → reference with digest. Raises LocalError."""
    tool = find_tool()
    arch = architecture()
    wanted = builds(names)
    if any(not build.arguments for build in wanted):
        run([tool, "build", "--file", str(CHECKOUT / "images/base/Containerfile"), "--tag", BASE, str(CHECKOUT)])
    references = {}
    for build in wanted:
        if arch not in build.architectures:
            console.print(f"{build.name}: not for {arch}; run this on one of: {', '.join(build.architectures)}")
            continue
        target = f"{registry.rstrip('/')}/moonstack/{build.name}:{tag}"
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "digest"
            for command in commands(tool, build, target, found):
                run(command)
            references[build.name] = f"{target.rpartition(':')[0]}@{read_digest(found)}"
        console.print(f"{build.name}: pushed {references[build.name]}")
    return references


def read_digest(path: Path) -> str:
    """The digest that buildah, podman or docker left. Raises LocalError."""
    text = path.read_text().strip() if path.exists() else ""
    digest = json.loads(text).get("containerimage.digest", "") if text.startswith("{") else text
    if not digest.startswith("sha256:"):
        raise LocalError("the push left no digest: is the registry's answer complete?")
    return digest


def find_tool() -> str:
    """buildah, podman or docker, whichever is there. Raises LocalError."""
    found = next((tool for tool in ("buildah", "podman", "docker") if shutil.which(tool)), None)
    if found is None:
        raise LocalError("no image builder is on PATH: install buildah, podman or docker")
    return found


def architecture() -> Arch:
    """This machine's architecture as images call it. Raises LocalError."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise LocalError(f"no image is built for {machine}")
    return _ARCHITECTURES[machine]


def run(command: list[str]) -> None:
    """Run a builder with its output to the user. Raises LocalError."""
    done = subprocess.run(command, cwd=CHECKOUT, check=False)
    if done.returncode:
        raise LocalError(f"{' '.join(command[:3])} … failed with exit code {done.returncode}")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(images)


def images(
    registry: Annotated[
        str, typer.Option(envvar="REGISTRY", help="Registry and path, such as registry.example.com/ai.")
    ],
    names: Annotated[list[str] | None, typer.Argument(help="Images; all of production when not given.")] = None,
    tag: Annotated[str, typer.Option(help="Tag beside the digest.")] = "0.1.0",
) -> None:
    """Build and push the images for this machine's architecture; prints `cluster.images` for the stack file."""
    references = publish(registry, tag, names or (), Console(stderr=True, highlight=False, soft_wrap=True))
    typer.echo(yaml.safe_dump({"images": references}, sort_keys=False), nl=False)
