"""What the environment moves: the cache and the state folder, both outside the checkout, and the local cluster's port."""

import os
from pathlib import Path
from typing import Final

LOCAL_PORT: Final = 8443
"""The local cluster's load balancer on the loopback interface."""


def _base(variable: str, xdg: str, default: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser().resolve()
    return Path(os.environ.get(xdg) or Path.home() / default).expanduser().resolve() / "moonstack"


def cache_dir() -> Path:
    """Builds, images, wheels and models, keyed by version; safe to delete. `MOONSTACK_CACHE` moves it."""
    return _base("MOONSTACK_CACHE", "XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """The local cluster, dev's Pulumi state, passphrase and keys; `down` removes it. `MOONSTACK_STATE` moves it."""
    return _base("MOONSTACK_STATE", "XDG_STATE_HOME", ".local/state")


def local_kubeconfig() -> Path:
    """The kubeconfig of the local cluster's administrator, written by `python -m local up`."""
    return state_dir() / "kubeconfig"


def local_port() -> int:
    """The local cluster's port. `MOONSTACK_PORT` moves it. Raises ValueError for what is no port."""
    port = os.environ.get("MOONSTACK_PORT") or str(LOCAL_PORT)
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(f"MOONSTACK_PORT={port} is no port; example: {LOCAL_PORT}")
    return int(port)
