"""Where Moonstack keeps what it builds and what it knows: one cache folder and one state folder, both outside the checkout."""

import os
from pathlib import Path


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
