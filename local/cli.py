"""The commands of `python -m local`."""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from local import dry_run, packages, stack_commands, tools
from local.cluster import addons, lifecycle
from local.cluster.layout import layout
from local.cluster.processes import Supervisor
from local.cluster.status import Status, status
from local.completion import completion
from local.errors import LocalError
from local.progress import Progress
from local.tools.catalogue import CLUSTER, DEFAULT
from settings.errors import SettingsError
from settings.paths import local_kubeconfig, state_dir

app = typer.Typer(
    help="The tool chain and the local Kubernetes cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
stack_commands.register(app)
app.command()(completion)
_out = Console(highlight=False, soft_wrap=True)


@app.command()
def up(
    network_policies: Annotated[bool, typer.Option(help="Enforce NetworkPolicies (starts kube-router).")] = False,
) -> None:
    """Start the local cluster, or repair it; with DRY_RUN=1 only say what would be done."""
    wanted = ("network-policies",) if network_policies else ()
    progress = Progress()
    if dry_run.is_on():
        dry_run.say(progress, (*packages.NODE, *addons.packages(wanted)), (*CLUSTER, *addons.tools(wanted)))
        return
    lifecycle.up(progress, wanted)
    progress.say(f"The local cluster is ready: export KUBECONFIG={local_kubeconfig()}")


@app.command()
def down() -> None:
    """Stop the local cluster and remove everything but the cache."""
    lifecycle.down(Progress())


@app.command(name="status")
def show_status(json: Annotated[bool, typer.Option("--json", help="For machines.")] = False) -> None:
    """Say how the cluster is; the exit code is 0 only when it is usable."""
    found = status(layout(), str(local_kubeconfig()))
    if json:
        sys.stdout.write(found.model_dump_json(indent=2) + "\n")
    else:
        _print(found)
    raise typer.Exit(0 if found.usable else 1)


@app.command()
def logs(
    name: Annotated[str | None, typer.Argument(help="A component; without it, all of them are listed.")] = None,
    lines: Annotated[int, typer.Option(min=1, help="How many lines of the end.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows.")] = False,
) -> None:
    """Show a component's log."""
    supervisor = Supervisor(state_dir())
    known = supervisor.names()
    if name is None:
        for one in known:
            _out.print(f"{one}: {supervisor.log(one)}", markup=False)
        return
    if name not in known:
        raise LocalError(f"{name} has no log; there are: {', '.join(known) or 'none, the cluster was not started'}")
    flags = ["--follow=name"] if follow else []
    os.execvp("tail", ["tail", f"--lines={lines}", *flags, str(supervisor.log(name))])


@app.command(name="tools")
def build_tools(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tools to make ready; default: what `make up` needs.")
    ] = None,
) -> None:
    """Build the tool chain and print where each tool is."""
    wanted = names or list(DEFAULT)
    tools.ensure(wanted, Progress())
    for name in wanted:
        _out.print(f"{name}: {tools.find(name) or 'comes with your Pulumi'}", markup=False)


@app.command()
def addon(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(addons.ADDONS)}.")],
    off: Annotated[bool, typer.Option("--off", help="Stop it and remove what it set up.")] = False,
) -> None:
    """Start or stop a part of the cluster that not everyone needs."""
    addons.named(name)
    if off:
        lifecycle.stop_addon(name, Progress())
    else:
        lifecycle.up(Progress(), (name,))


def main() -> None:
    """Run the command line; what is wrong on this machine is said in plain lines, with exit code 1."""
    try:
        app()
    except (LocalError, SettingsError) as error:
        for line in str(error).splitlines():
            Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {line}", markup=False)
        sys.exit(1)


def _print(found: Status) -> None:
    _out.print(f"{'usable' if found.usable else 'not usable'}; API server {found.server}", markup=False)
    table = Table("node", "ready", "memory", "chips")
    for node in found.nodes:
        chips = ", ".join(f"{name}: {count}" for name, count in node.chips.items())
        table.add_row(node.name, "yes" if node.ready else "no", node.memory, chips)
    if found.nodes:
        _out.print(table)
    dead = [name for name, running in found.processes.items() if not running]
    if dead:
        _out.print(f"stopped: {', '.join(dead)}; `python -m local up` starts them again", markup=False)
    on = [name for name, running in found.addons.items() if running]
    _out.print(f"addons: {', '.join(on) or 'none'}", markup=False)
