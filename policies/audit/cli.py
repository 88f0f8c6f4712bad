"""The audit's command: which places belong to a stack."""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Final

import kr8s
import typer
from rich.console import Console
from rich.table import Table

from policies.audit import cluster, engine, leftovers, state
from policies.audit.run import Audit, Place, Unreadable, audit
from policies.audit.search import Canaries
from settings.command_line import stack_name, writable
from settings.errors import SettingsError
from settings.key_values.local import LocalKeys
from settings.paths import state_dir
from settings.settings import Settings
from settings.temporary import private_folder

BACKEND: Final = "PULUMI_BACKEND_URL"
console = Console(stderr=True, soft_wrap=True, highlight=False)


def audit_command(
    stack: Annotated[str, typer.Option("--stack", callback=stack_name, help="The stack to audit.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", callback=writable, help="Write what was found for machines; - for stdout.")
    ] = None,
    canary_file: Annotated[
        Path | None, typer.Option(help="A file with one value a line that must be found nowhere.")
    ] = None,
    manifests: Annotated[
        Path | None, typer.Option(help="A folder of rendered manifests or reports to search too.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Leave the cluster out.")] = False,
) -> None:
    """Look for keys in state, backups, history, previews, live objects, logs, processes and Envoy.

    Exit 1 if any is found, 2 if none is and a place could not be read.
    """
    try:
        settings = Settings.from_stack_file(Path(f"Pulumi.{stack}.yaml"), as_deployed=True)
    except SettingsError as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(2) from None
    places = [
        *state.places(_backend(settings), stack),
        *engine.places([sys.executable, "-m", "local", "pulumi", "--stack", stack]),
    ]
    if manifests:
        places.append(engine.files(manifests))
    if not offline:
        places += _cluster_places(settings, stack)
    result = audit(places, Canaries(_canaries(settings, canary_file)))
    _show(result)
    if json_file:
        text = json.dumps(result.document(), indent=2) + "\n"
        sys.stdout.write(text) if str(json_file) == "-" else json_file.write_text(text)
    raise typer.Exit(result.exit_code)


def _backend(settings: Settings) -> str:
    """The ambient backend; for a stack on the local cluster, the one in the state directory."""
    local = f"file://{state_dir() / 'pulumi' / 'backend'}" if settings.cluster.kubeconfig == "local" else ""
    return os.environ.get(BACKEND) or local


def _cluster_places(settings: Settings, stack: str) -> list[Place]:
    where = settings.cluster
    warnings.filterwarnings("ignore", "Kubernetes version .* is not supported", UserWarning)
    private_folder()
    try:
        api = kr8s.api(kubeconfig=where.kubeconfig_path, context=where.context, namespace=where.namespace)
    except Exception as error:  # whatever a broken kubeconfig makes kr8s raise
        reason = type(error).__name__
        return [Place("cluster", lambda: _unreachable(reason))]
    return [*cluster.places(api, where.namespace), leftovers.place(api, settings, stack)]


def _unreachable(reason: str) -> list[tuple[str, str]]:
    raise Unreadable(f"the cluster could not be reached ({reason})")


def _canaries(settings: Settings, file: Path | None) -> tuple[str, ...]:
    """Planted values, and dev's own keys: those are at hand."""
    planted = file.read_text().split() if file else []
    ids = [key.id for key in settings.keys.keys] if settings.keys.source == "local" else []
    own = [value for versions in LocalKeys().read(ids).values() for value in versions.values()]
    return tuple(value for value in (*planted, *own) if len(value) >= 16)


def _show(result: Audit) -> None:
    table = Table("place", "items", "result", box=None)
    for one in result.looked:
        sightings = [found for found in result.sightings if found.place == one.place]
        said = f"not read: {one.unread}" if one.unread else f"{len(sightings)} finding(s)" if sightings else "clean"
        table.add_row(one.place, str(one.items), said)
    Console(soft_wrap=True).print(table)
    for found in result.sightings:
        console.print(f"{found.place}: {found.where}: {found.path}: {found.kind}", style="red", markup=False)
