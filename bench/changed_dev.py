"""The dev stack with another configuration for a while: by the real `pulumi up`, and back again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from bench.at_once import leaving_at_once
from local.errors import LocalError
from local.workspace import LOCAL_STACK, workspace
from settings.settings import Settings

Groups = dict[str, Any]
"""The stack's configuration by key (`moonstack:models`, …), to be changed in place."""


@contextmanager
def changed_dev(change: Callable[[Groups], None]) -> Iterator[Settings]:
    """Deploy dev with a changed configuration; afterwards dev as it was. Raises LocalError when either does not succeed.

    Nothing may be asked while either goes on: pods that leave don't drain.
    """
    path = workspace(LOCAL_STACK).folder / f"Pulumi.{LOCAL_STACK}.yaml"
    original = path.read_text()
    document = yaml.safe_load(original)
    change(document["config"])
    namespace = Settings.from_stack_file(path).cluster.namespace
    try:
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        with leaving_at_once(namespace):
            deploy()
        yield Settings.from_stack_file(path)
    finally:
        path.write_text(original)
        with leaving_at_once(namespace):
            deploy()


def deploy(*arguments: str) -> None:
    """`pulumi up` on dev with what its stack file says now. Raises LocalError."""
    code = workspace(LOCAL_STACK).run("up", "--yes", "--skip-preview", "--non-interactive", *arguments)
    if code:
        raise LocalError(f"pulumi up -s {LOCAL_STACK} ended with {code}; its messages are above")
