"""The root file system below every image of the local cluster: Debian with Python 3.11, and programs run inside it."""

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from local import archive, packages
from local.errors import LocalError
from local.progress import Progress
from local.runtime import cache

SUITE = "bookworm"
PACKAGES = (
    "ca-certificates",
    "libcurl4",
    "libgomp1",
    "libibverbs1",
    "libnuma1",
    "librdmacm1",
    "libstdc++6",
    "python3",
)
"""Beside Debian's essential packages: Python, and what the wheels of Mooncake and PyTorch link to but don't bring along."""

USER_ID = 65532
"""The user of every image: none of the host's."""

MIRROR_VARIABLE = "MOONSTACK_DEBIAN_MIRROR"
"""Environment variable with the address of a Debian mirror to use instead of mmdebstrap's default."""

_VERSION = "1"
_BUILDER_PACKAGES = ("mmdebstrap", "debian-archive-keyring")
_UNNEEDED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
_OF_THE_MOMENT = ("etc/hostname", "etc/machine-id", "etc/resolv.conf", "var/cache/ldconfig/aux-cache")
_MOUNT_AND_ENTER = """
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/opt"
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  shift 2
done
shift
exec chroot "$root" "$@"
"""


def digest() -> str:
    """Changes with the recipe; Debian's own updates come when the cache is emptied."""
    return cache.key(_VERSION, SUITE, *PACKAGES, *_UNNEEDED)


def missing_packages() -> tuple[str, ...]:
    """Debian packages of the host that the next build of the base needs; none once it is built."""
    return () if folder().exists() else _BUILDER_PACKAGES


def folder() -> Path:
    """Where the root file system is, or will be."""
    return cache.runtime_dir() / f"base-{digest()}"


def ensure(progress: Progress) -> Path:
    """Have the root file system and give its folder; installs mmdebstrap when that is missing.

    Raises LocalError on another processor than x86_64, or if Debian's packages can't be had.
    """
    if platform.machine() != "x86_64":
        raise LocalError(
            f"the local images are for x86_64, this machine is {platform.machine()}; use a cluster of its own kind"
        )
    if not folder().exists():
        packages.ensure(_BUILDER_PACKAGES, progress)
        with progress.phase("base root file system"):
            cache.ensure(folder(), _build)
    return folder()


def layer() -> Path:
    """Where the root file system is, or will be, as an image layer: a tar file."""
    return folder().with_suffix(".tar")


def ensure_layer(progress: Progress) -> None:
    """Have the root file system as an image layer."""
    root = ensure(progress)
    cache.ensure(layer(), lambda partial: archive.write_layer(partial, archive.tree(root, "/")))


def run(
    root: Path,
    command: Sequence[str],
    binds: Mapping[str, Path] | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a program in a root file system; `binds` maps paths below /opt to folders of the host.

    All mounts live in a mount namespace of the program's own and end with it. Raises LocalError with its last line.
    """
    pairs = [text for path, source in (binds or {}).items() for text in (str(source), path)]
    entered = ["sh", "-euc", _MOUNT_AND_ENTER, "sh", str(root), *pairs, "--", *command]
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", *entered],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalError(
            f"{' '.join(command[:3])} failed in the base root file system: {last_line(done.stderr or done.stdout)}"
        )


def last_line(output: str) -> str:
    """The last line that says something; command-line programs put their error there."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no output")


def _build(target: Path) -> None:
    _bootstrap(target)
    for name in _OF_THE_MOMENT:
        cache.remove(target / name)
    for log in (target / "var/log").rglob("*"):
        if log.is_file():
            log.unlink()
    _add_user(target)
    compile_python(target, "/usr/lib/python3", "/usr/lib/python3.11")


def _bootstrap(target: Path) -> None:
    # In a mount namespace of its own: killed at any point, it leaves no /dev mounted in a folder that is removed next time.
    enter = ("unshare", "--mount", "--propagation", "private")
    options = (
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        "--architectures=amd64",
        f"--include={','.join(PACKAGES)}",
    )
    exclusions = (f"--dpkgopt=path-exclude={pattern}" for pattern in _UNNEEDED)
    mirror = [os.environ[MIRROR_VARIABLE]] if os.environ.get(MIRROR_VARIABLE) else []
    done = subprocess.run(
        [*enter, "mmdebstrap", *options, *exclusions, SUITE, str(target), *mirror],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalError(
            f"mmdebstrap failed: {last_line(done.stderr)}; check the network, or name a Debian mirror in {MIRROR_VARIABLE}"
        )


def _add_user(target: Path) -> None:
    with (target / "etc/passwd").open("a") as users:
        users.write(f"nonroot:x:{USER_ID}:{USER_ID}:nonroot:/tmp:/usr/sbin/nologin\n")
    with (target / "etc/group").open("a") as groups:
        groups.write(f"nonroot:x:{USER_ID}:\n")


def compile_python(root: Path, *folders: str, binds: Mapping[str, Path] | None = None, skip: str = "(?!)") -> None:
    """Compile Python files to bytecode that stays valid without their times: layers and read-only mounts can't be written later.

    `skip` is a regular expression of paths to leave out. Raises LocalError if a file does not compile.
    """
    command = ["python3", "-m", "compileall", "-q", "-f", "-j0", "--invalidation-mode=unchecked-hash", "-x", skip]
    run(root, [*command, *folders], binds)
