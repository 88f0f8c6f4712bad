"""A small valid stack of every kind of pool, which tests bend until a rule refuses it."""

import copy
from typing import Any

import pytest

from settings.errors import SettingsError
from settings.settings import Settings

REVISION = "0123456789abcdef"

_STACK: dict[str, Any] = {
    "environment": "pre",
    "cluster": {"identifier": "test", "namespace": "serving", "kubeconfig": "local"},
    "nodePools": [
        {"name": "npu", "chip": "ascend-910b", "driverStack": "mindcluster", "arch": "arm64", "count": 4, "chipsPerNode": 8,
         "memory": "512Gi"},
        {"name": "gpu", "chip": "nvidia-h100", "driverStack": "gpu-operator", "arch": "amd64", "count": 4, "chipsPerNode": 8},
        {"name": "mig", "chip": "nvidia-h100", "driverStack": "mig-3g.40gb", "arch": "amd64", "count": 1, "chipsPerNode": 8},
        {"name": "edge", "chip": "ascend-310p", "driverStack": "hami", "arch": "arm64", "count": 1, "chipsPerNode": 4},
        {"name": "riscv", "chip": "xuantie-c910", "driverStack": "none", "arch": "riscv64", "count": 1, "chipsPerNode": 0},
    ],
    "models": [
        {
            "name": "big",
            "backend": "kthena",
            "connector": "mooncake-v1",
            "weights": {"source": "hostPath", "location": "/models/big", "revision": REVISION, "size": "130Gi"},
            "prefill": {"pool": "npu", "replicas": 1, "chips": 8, "memory": "128Gi"},
            "decode": {"pool": "npu", "replicas": 1, "chips": 4, "memory": "128Gi"},
        },
        {
            "name": "small",
            "backend": "native",
            "connector": "nixl",
            "weights": {"source": "pvc", "location": "models/small", "revision": REVISION, "size": "16Gi"},
            "prefill": {"pool": "gpu", "replicas": 1, "chips": 1, "memory": "32Gi"},
            "decode": {"pool": "gpu", "replicas": 1, "chips": 1, "memory": "32Gi"},
        },
    ],
    "kvStore": {"protocol": "ascend", "leaseTtlMs": 11_000},
    "smoke": {"via": "port-forward"},
    "channel": {"enabled": False},
    "autoscaling": {"gateway": {"enabled": False}, "engines": {"enabled": False}},
}  # fmt: skip


def stack() -> dict[str, Any]:
    """A fresh copy: model 0 `big` on Ascend and Kthena, model 1 `small` on H100 and plain Kubernetes."""
    return copy.deepcopy(_STACK)


def problems(values: dict[str, Any]) -> list[str]:
    """The lines that refuse a stack. Fails when it is accepted."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_mapping(values)
    return [problem.line() for problem in caught.value.problems]


def refused(values: dict[str, Any], path: str, *words: str) -> bool:
    """Whether the one and only problem stands at `path` and its line holds the words."""
    lines = problems(values)
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"moonstack:{path}: "), lines[0]
    assert all(word in lines[0] for word in words), lines[0]
    return True


def accepted(values: dict[str, Any]) -> bool:
    """Whether the stack is valid. Raises SettingsError."""
    Settings.from_mapping(values)
    return True
