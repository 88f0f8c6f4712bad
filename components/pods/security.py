"""The restricted pod security level, which every pod of ours keeps unless its chip forbids it."""

from collections.abc import Iterable
from typing import Any, Final

USER: Final = 65532
"""The unprivileged user of all our images."""


def pod_security() -> dict[str, Any]:
    """The pod's securityContext."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security(capabilities: Iterable[str] = ()) -> dict[str, Any]:
    """A container's securityContext; `capabilities` are those a chip's transport needs (such as IPC_LOCK for RDMA)."""
    added = list(capabilities)
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], **({"add": added} if added else {})},
    }
