"""Where Pulumi runs for a stack: a project folder and an environment.

dev and the offline verbs run from a folder outside the checkout whose Pulumi.yaml points back at it, so that the salt
that `pulumi stack init` writes never touches a tracked file.
"""

import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from local import tools
from local.errors import LocalError
from settings import temporary
from settings.paths import state_dir
from settings.stack_file import UnreadableError, read_yaml

CHECKOUT = Path(__file__).resolve().parent.parent
PACK = CHECKOUT / "policies" / "pack"
LOCAL_STACK = "dev"
BACKEND_VARIABLE = "PULUMI_BACKEND_URL"


@dataclass(frozen=True)
class Workspace:
    """One stack's folder and what its environment adds to the user's."""

    stack: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> int:
        """Run a Pulumi command on the stack with its output to the user; returns the exit code."""
        return subprocess.run(self._command(arguments), cwd=self.folder, env=self._full(), check=False).returncode

    def preview(self) -> dict[str, Any]:
        """The stack's preview as Pulumi's JSON. Raises LocalError with its errors alone."""
        done = subprocess.run(
            self._command(("preview", "--json")),
            cwd=self.folder,
            env=self._full(),
            capture_output=True,
            text=True,
            check=False,
        )
        found = _json(done.stdout)
        if done.returncode or found is None:
            reason = _errors(found or {}) or done.stderr or f"exit {done.returncode}"
            raise LocalError(f"pulumi preview: {' '.join(reason.split())}")
        return found

    def run_quietly(self, *arguments: str) -> int:
        """Run a Pulumi command whose output nobody needs; returns the exit code."""
        command = self._command(arguments)
        return subprocess.run(command, cwd=self.folder, env=self._full(), capture_output=True, check=False).returncode

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a Pulumi command whose output is read by the caller; the process leads a group of its own."""
        return subprocess.Popen(
            self._command(arguments),
            cwd=self.folder,
            env=self._full(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def output(self, *arguments: str) -> str:
        """What a Pulumi command on the stack prints. Raises LocalError with what it said."""
        done = subprocess.run(
            self._command(arguments), cwd=self.folder, env=self._full(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = " ".join((done.stderr or done.stdout).split()) or f"exit {done.returncode}"
            raise LocalError(f"pulumi {' '.join(arguments)}: {reason}")
        return done.stdout

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(tools.path("pulumi")), *arguments, "--stack", self.stack]

    def _full(self) -> dict[str, str]:
        return {**temporary.environment(), **self.environment}


def workspace(stack: str) -> Workspace:
    """The workspace of a stack: dev's is in the state directory, others run in the checkout on their own backend.

    Raises LocalError if another stack than dev has no backend.
    """
    if stack == LOCAL_STACK:
        return Workspace(stack, pulumi_dir() / "project", _common() | _local_backend(pulumi_dir()))
    if not has_backend():
        raise LocalError(
            f"{BACKEND_VARIABLE} is not set; stack {stack} keeps its state in a backend of yours, such as s3://…"
        )
    return Workspace(stack, CHECKOUT, _common())


def has_backend() -> bool:
    """Whether the user named a backend; an empty variable names none."""
    return bool(os.environ.get(BACKEND_VARIABLE, "").strip())


@contextmanager
def offline(stack: str, overrides: Mapping[str, Any], more: Mapping[str, str] | None = None) -> Iterator[Workspace]:
    """A throw-away copy of a stack for verbs that serve nobody: scratch backend and passphrase, placeholder keys.

    `overrides` replaces whole groups of the configuration (`{"smoke": {...}}`); `more` is added to the environment.
    """
    with tempfile.TemporaryDirectory(prefix="moonstack-offline-") as scratch:
        root = Path(scratch)
        config = stack_config(stack)
        keys = config.get("moonstack:keys") or {}
        if isinstance(keys, dict):  # else the program says what is wrong with them
            config["moonstack:keys"] = keys | {"source": "placeholder"}
        config |= {f"moonstack:{group}": value for group, value in overrides.items()}
        environment = _common() | _local_backend(root) | {"PULUMI_SKIP_CHECKPOINTS": "true", **(more or {})}
        here = Workspace(stack, root / "project", environment)
        create(here, root, {"config": config})
        yield here


def create(here: Workspace, root: Path, stack_file: Mapping[str, Any]) -> None:
    """Make a local backend, passphrase, project folder and the stack, as far as they are missing."""
    for folder in ("backend", "home", "project"):
        (root / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    write_secret_once(root / "passphrase", secrets.token_urlsafe(32))
    _write_project(here, stack_file)
    if not (root / "backend" / ".pulumi" / "stacks").exists() or here.stack not in _known_stacks(here):
        here.output("stack", "init", "--secrets-provider", "passphrase", "--no-select")


def stack_config(stack: str) -> dict[str, Any]:
    """The `config` of a tracked stack file. Raises LocalError if there is none, or it can't be read."""
    path = CHECKOUT / f"Pulumi.{stack}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.name.split(".")[1] for p in CHECKOUT.glob("Pulumi.*.yaml")))
        raise LocalError(f"there is no {path.name}; stacks: {known}")
    try:
        document = read_yaml(path)
    except UnreadableError as error:
        raise LocalError(f"{path.name}: cannot be read: {error}; correct the file") from None
    config = (document.get("config") if isinstance(document, dict) else None) or {}
    if not isinstance(config, dict):
        raise LocalError(f"{path.name}: config: must be a mapping; write one key a line")
    return {str(key): value for key, value in config.items()}


def pulumi_dir() -> Path:
    """dev's backend, passphrase, project folder and Pulumi home."""
    return state_dir() / "pulumi"


def write_secret_once(path: Path, value: str) -> None:
    """Write a secret that only the owner can read, unless it is there already."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.read_text().strip():
        return
    partial = path.with_name(path.name + ".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as target:
        target.write(value)
    partial.rename(path)


def _errors(preview: Mapping[str, Any]) -> str:
    """What a preview that failed says of it: Pulumi's errors, else what the program wrote to stderr before it ended."""
    said = preview.get("diagnostics") or ()
    for severity in ("error", "info#err"):
        if found := [each["message"] for each in said if each.get("severity") == severity]:
            return " ".join(found)
    return ""


def _json(text: str) -> dict[str, Any] | None:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def _known_stacks(here: Workspace) -> list[str]:
    command = [str(tools.path("pulumi")), "stack", "ls", "--json"]
    done = subprocess.run(
        command, cwd=here.folder, env={**os.environ, **here.environment}, capture_output=True, text=True, check=False
    )
    return [entry["name"] for entry in json.loads(done.stdout or "[]")]


def _write_project(here: Workspace, stack_file: Mapping[str, Any]) -> None:
    project = yaml.safe_load((CHECKOUT / "Pulumi.yaml").read_text())
    project["main"] = str(CHECKOUT)
    project["runtime"]["options"]["virtualenv"] = str(CHECKOUT / ".venv")
    (here.folder / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))
    path = here.folder / f"Pulumi.{here.stack}.yaml"
    kept = yaml.safe_load(path.read_text()) if path.exists() else {}
    salt = {key: kept[key] for key in ("encryptionsalt",) if kept and key in kept}
    path.write_text(yaml.safe_dump({**stack_file, **salt}, sort_keys=False))


def _common() -> dict[str, str]:
    return {
        "PATH": tools.search_path(),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true",
        "PULUMI_OPTION_POLICY_PACK": str(PACK),
        "PYTHONPATH": str(CHECKOUT),
    }


def _local_backend(root: Path) -> dict[str, str]:
    return {
        BACKEND_VARIABLE: f"file://{root / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(root / "passphrase"),
        "PULUMI_HOME": str(root / "home"),
    }
