"""Commands of `python -m local` that deploy: dev from nothing, and Pulumi as the wrappers run it."""

import shlex
import subprocess
import sys
from typing import Annotated

import typer

from local import dev, dry_run, images, packages
from local import upgrade as upgrade_cli
from local.progress import Progress
from local.rehearse import cli as rehearse_cli
from local.runtime import base
from local.tools.catalogue import DEFAULT
from local.workspace import BACKEND_VARIABLE, CHECKOUT, LOCAL_STACK, has_backend, offline, workspace
from settings.command_line import stack_name

Stack = Annotated[
    str, typer.Option("--stack", "-s", callback=stack_name, help="dev, pre, prod or another Pulumi.<stack>.yaml.")
]

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(deploy)
    app.command(name="pulumi", context_settings=_PASS_ON)(pulumi)
    app.command(name="env")(show_environment)
    app.command(context_settings=_PASS_ON)(preview)
    app.command()(upgrade_cli.upgrade)
    rehearse_cli.register(app)
    images.register(app)


def deploy(
    stack: Stack = LOCAL_STACK,
    skip_preflight: Annotated[bool, typer.Option(help="Deploy though preflight finds something missing.")] = False,
) -> None:
    """Bring a stack up: for dev build what is missing, start the cluster and deploy; else preflight, then `pulumi up`.

    With DRY_RUN=1 only say what would be done.
    """
    if dry_run.is_on():
        raise typer.Exit(_only_say(stack))
    if stack == LOCAL_STACK:
        raise typer.Exit(dev.up())
    here = workspace(stack)
    dev.prepare_engine(Progress())
    if not skip_preflight:
        command = [sys.executable, "-m", "smoke", "preflight", "--stack", stack]
        if code := subprocess.run(command, cwd=CHECKOUT, check=False).returncode:
            Progress().say("nothing was applied; --skip-preflight deploys all the same")
            raise typer.Exit(code)
    raise typer.Exit(here.run("up"))


def _only_say(stack: str) -> int:
    if stack != LOCAL_STACK:
        return workspace(stack).run("preview")
    progress = Progress()
    dry_run.say(progress, (*packages.NODE, *base.missing_packages()), DEFAULT)
    progress.say("To make in the cache where missing: images, the CPU engine, development models (10 GB)")
    progress.say(f"To deploy: stack {stack}, with keys and certificate of its own")
    return 0


def pulumi(context: typer.Context, stack: Stack = LOCAL_STACK) -> None:
    """Run any Pulumi command on a stack in its environment, with the policy pack: `… pulumi -s dev preview --diff`."""
    here = workspace(stack)
    dev.prepare_engine(Progress())
    if stack == LOCAL_STACK:
        dev.recover(Progress())
    raise typer.Exit(here.run(*context.args))


def preview(context: typer.Context, stack: Stack = LOCAL_STACK) -> None:
    """What `up` would do, with the policy pack; a stack whose backend is not set is previewed from nothing, offline."""
    upgrade_cli.announce(stack, Progress())
    dev.prepare_engine(Progress())
    if stack == LOCAL_STACK or has_backend():
        raise typer.Exit(workspace(stack).run("preview", *context.args))
    Progress().say(f"{BACKEND_VARIABLE} is not set: {stack} is previewed from nothing, with placeholder keys")
    with offline(stack, {}) as here:
        raise typer.Exit(here.run("preview", *context.args))


def show_environment(stack: Stack = LOCAL_STACK) -> None:
    """Print the environment in which plain `pulumi -C <folder>` works on a stack: `eval "$(… env)"`; what Pulumi needs is made first."""
    here = workspace(stack)
    dev.prepare_engine(Progress())
    for name, value in here.environment.items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    sys.stdout.write(f"# then: pulumi -C {shlex.quote(str(here.folder))} preview --stack {here.stack}\n")
