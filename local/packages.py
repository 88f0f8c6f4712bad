"""Debian packages that the local cluster needs: named before they are installed, and no service of theirs is started."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from local.alone import alone
from local.errors import LocalError
from local.progress import Progress
from settings.paths import cache_dir

NODE = ("containerd", "runc", "containernetworking-plugins", "iproute2", "nftables", "iptables", "util-linux")
NETWORK_POLICIES = ("ipset", "iptables")

_POLICY = Path("/usr/sbin/policy-rc.d")
_POLICY_TEXT = "#!/bin/sh\n# Written for one installation by moonstack: start no service.\nexit 101\n"
_SECONDS_TO_REFUSE = 10


def missing(names: Iterable[str]) -> list[str]:
    """Which of the packages are not installed, in the order given and without repeats."""
    names = list(dict.fromkeys(names))
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\\n", *names],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in names if name not in installed]


def ensure(names: Iterable[str], progress: Progress) -> None:
    """Install what is missing, after saying so; on a terminal the user has ten seconds to refuse.

    Raises LocalError where apt is absent or fails.
    """
    names = list(names)
    if not missing(names):
        return
    cache_dir().mkdir(parents=True, exist_ok=True)
    with alone(cache_dir() / "packages.lock"):
        if wanted := missing(names):
            _install(wanted, progress)


def _install(wanted: Sequence[str], progress: Progress) -> None:
    progress.say(f"Debian packages to install: {' '.join(wanted)}")
    _wait_for_refusal(progress)
    with progress.phase("Debian packages"), _no_services_started():
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *wanted)
        _stay_disabled(wanted)


def _wait_for_refusal(progress: Progress) -> None:
    if sys.stdin.isatty():
        progress.say(f"Going on in {_SECONDS_TO_REFUSE} seconds; Ctrl-C to stop.")
        time.sleep(_SECONDS_TO_REFUSE)


def _apt(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    command = ["apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise LocalError(f"apt-get {' '.join(arguments)} failed: {''.join(last)}; install the packages and run again")


@contextmanager
def _no_services_started() -> Iterator[None]:
    """Debian starts a package's service unless /usr/sbin/policy-rc.d forbids it; a file that the user has there stays."""
    ours = not _POLICY.exists() or _POLICY.read_text() == _POLICY_TEXT
    if ours:
        _POLICY.write_text(_POLICY_TEXT)
        _POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            _POLICY.unlink(missing_ok=True)


def _stay_disabled(installed: Iterable[str]) -> None:
    """containerd's package enables its service; the local cluster runs its own, so the next boot must not start that one."""
    if "containerd" in installed and Path("/run/systemd/system").is_dir():
        subprocess.run(["systemctl", "disable", "--quiet", "containerd.service"], check=False)
