"""`make up`: from a fresh machine to a proven endpoint, and back with `make down`."""

import json
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from local import cluster, locks, prerequisites, runtime, state, tools
from local.alone import alone
from local.cluster import pki
from local.cluster.layout import layout
from local.errors import LocalError
from local.progress import Progress
from local.tools.catalogue import ENGINE
from local.workspace import CHECKOUT, LOCAL_STACK, PACK, create, pulumi_dir, stack_config, workspace, write_secret_once
from settings.paths import local_kubeconfig, state_dir
from settings.settings import Settings

GATEWAY_CA = "gateway-ca"
GATEWAY_CERTIFICATE = "gateway"
KEY_PREFIX = "msk-"


def up(arguments: list[str] | None = None) -> int:
    """Build what is missing, start the cluster, deploy dev; returns Pulumi's exit code."""
    started = time.monotonic()
    progress = Progress()
    settings = Settings.from_stack_file(CHECKOUT / f"Pulumi.{LOCAL_STACK}.yaml")
    prerequisites.check(layout())
    state.claim()
    build(progress)
    cluster.up(progress)
    runtime.import_images(layout().socket, progress)
    prepare(settings, progress)
    code = workspace(LOCAL_STACK).run("up", "--yes", "--skip-preview", *(arguments or []))
    if code == 0:
        say_how_to_use(settings, time.monotonic() - started)
    return code


def prepare(settings: Settings, progress: Progress) -> None:
    """Keys, certificate, policy environment, and dev's stack with a free lock."""
    prepare_pack(progress)
    write_keys(settings)
    write_certificate(settings)
    create(workspace(LOCAL_STACK), pulumi_dir(), {"config": stack_config(LOCAL_STACK)})
    recover(progress)


def recover(progress: Progress) -> None:
    """Clear what a killed run left: its lock, and creations it never heard of again.

    The next run takes such objects over, as field manager and names are fixed.
    """
    if locks.clear_stale(pulumi_dir() / "backend", progress):
        workspace(LOCAL_STACK).output(
            "refresh", "--yes", "--skip-preview", "--non-interactive", "--clear-pending-creates"
        )


def build(progress: Progress) -> None:
    """Tools compile on the cores while the engine's wheels come over the network."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(tools.ensure, progress=progress), pool.submit(runtime.ensure, progress)]
        for job in jobs:
            job.result()


def prepare_engine(progress: Progress) -> None:
    """What any Pulumi command on any stack needs on a machine that has nothing yet: CLI, provider, policy pack. Raises LocalError."""
    tools.ensure(ENGINE, progress)
    prepare_pack(progress)


def prepare_pack(progress: Progress) -> None:
    """The policy pack's own Python environment, as its dependencies clash with the program's (protobuf 5 and 6)."""
    requirements = PACK / "requirements.txt"
    ready = PACK / ".venv" / "ready"
    with alone(requirements):
        if ready.exists() and ready.stat().st_mtime >= requirements.stat().st_mtime:
            return
        _build_pack(requirements, ready, progress)


def _build_pack(requirements: Path, ready: Path, progress: Progress) -> None:
    with progress.phase("Python environment of the policy pack"):
        uv = str(tools.path("uv"))
        python = str(PACK / ".venv" / "bin" / "python")
        _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(PACK / ".venv")])
        _run([uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", str(requirements)])
        ready.touch()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalError(f"{' '.join(command)}: {' '.join(done.stderr.split())}")


def write_keys(settings: Settings) -> None:
    """A fresh key for each one that dev declares, kept from run to run; 192 bits of entropy."""
    if settings.keys.source != "local":
        return
    for key in settings.keys.keys:
        write_secret_once(state_dir() / "keys" / key.id, KEY_PREFIX + secrets.token_hex(24))


def write_certificate(settings: Settings) -> None:
    """The gateway's certificate, signed by its own local CA, which the curl line names."""
    if settings.gateway.tls.source != "localCa":
        return
    one = pki.Certificate(
        GATEWAY_CERTIFICATE, "moonstack-gateway", authority=GATEWAY_CA, addresses=settings.gateway.tls.hosts
    )
    pki.issue(layout(), one)
    folder = gateway_dir()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, source in (
        ("ca.crt", pki.certificate_file(layout(), GATEWAY_CA)),
        ("tls.crt", pki.certificate_file(layout(), GATEWAY_CERTIFICATE)),
        ("tls.key", pki.key_file(layout(), GATEWAY_CERTIFICATE)),
    ):
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(source.read_bytes())


def gateway_dir() -> Path:
    """Where the gateway's certificate and CA are."""
    return state_dir() / "gateway"


def say_how_to_use(settings: Settings, seconds: float) -> None:
    """The endpoint, the key's id and place (never its value), and a line to copy."""
    out = Console(highlight=False, soft_wrap=True)
    found = json.loads(workspace(LOCAL_STACK).output("stack", "output", "--json"))
    client = next((key.id for key in settings.keys.keys if key.purpose == "client"), None)
    if client is None:
        raise LocalError("Pulumi.dev.yaml declares no key of purpose client under moonstack:keys; add one")
    key_file = state_dir() / "keys" / client
    out.print(f"\nMoonstack is up ({seconds:.0f} s)")
    out.print(f"  endpoint    {found['endpoint']}")
    out.print(f"  models      {', '.join(found['models'])}")
    out.print(f"  key         {client}, its value is in {key_file}")
    out.print(f"  kubeconfig  {local_kubeconfig()}")
    out.print("\nTry it:")
    body = (
        f'{{"model": "{found["models"][0]}", "messages": [{{"role": "user", "content": "Hello"}}], "max_tokens": 16}}'
    )
    out.print(
        f"  curl --cacert {gateway_dir() / 'ca.crt'} {found['endpoint']}/v1/chat/completions \\\n"
        f'    -H "Authorization: Bearer $(cat {key_file})" -H "Content-Type: application/json" \\\n'
        f"    -d '{body}'",
        markup=False,
    )
