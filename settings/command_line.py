"""What the command lines share: values of options are judged before anything is done."""

import math
import os
import re
from pathlib import Path
from typing import Final

import typer

_STACK_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Pulumi's alphabet and length of a stack's name."""


def stack_name(name: str | None) -> str | None:
    """A stack's name, which `Pulumi.<stack>.yaml` holds and nothing else. Raises typer.BadParameter for a path."""
    if name is None or _STACK_NAME.fullmatch(name):
        return name
    raise typer.BadParameter(f"{name!r} is no stack's name; give the <stack> of a Pulumi.<stack>.yaml, such as prod")


def finite(number: float | None) -> float | None:
    """A number that is one: a range alone lets nan pass. Raises typer.BadParameter."""
    if number is None or math.isfinite(number):
        return number
    raise typer.BadParameter(f"{number} is no finite number; give one such as 0.5")


def writable(path: Path | None) -> Path | None:
    """The path of a file, known to be writable before a run of minutes begins; no folder is made for it.

    Raises typer.BadParameter. `-` is stdout.
    """
    if path is None or str(path) == "-":
        return path
    folder = path.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"{path} can't be written: there is no folder {folder}; make it, or give another path")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise typer.BadParameter(f"{path} can't be written; give a file in a folder of yours")
    return path


def writable_folder(path: Path | None) -> Path | None:
    """The path of a folder that is there, or can be made in one that is. Raises typer.BadParameter."""
    if path is None or (path.is_dir() and os.access(path, os.W_OK)):
        return path
    if path.exists() or not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise typer.BadParameter(f"{path} can't be made; give a new folder in one of yours")
    return path
