"""Engine flags that a user may not write: Moonstack derives them, and a second value would contradict the first."""

from collections.abc import Sequence
from typing import Final

from rules.problem import Problem

DERIVED: Final[dict[str, str]] = {
    "--block-size": "engine.blockSize: all sharers of a cache need the same (vllm-project/vllm-ascend#12589)",
    "--data-parallel-size": "the roles' chips and nodes: connectors must be told the real size (volcano-sh/kthena example)",
    "--dtype": "engine.dtype: part of the KV identity",
    "--enable-prefix-caching": "the role",
    "--headless": "the role's nodes",
    "--host": "the pod's address",
    "--kv-transfer-config": "connector: a fixed engine_id in it is shared by all replicas and outlives restarts",
    "--master-addr": "the role's nodes",
    "--max-model-len": "engine.maxModelLen",
    "--max-num-seqs": "engine.maxNumSeqs",
    "--model": "weights",
    "--nnodes": "the role's nodes",
    "--node-rank": "the role's nodes",
    "--no-enable-prefix-caching": "the role",
    "--port": "the fixed port 8000, the only one that Kthena 0.4 scrapes (volcano-sh/kthena#1185)",
    "--quantization": "engine.quantization: part of the KV identity",
    "--revision": "weights.revision",
    "--served-model-name": "the model's name: router, gateway and engine must agree on it",
    "--shutdown-timeout": "longestRequestSeconds",
    "--tensor-parallel-size": "the role's chips",
    "--tokenizer": "weights: part of the KV identity",
    "--api-key": "nothing: keys are checked at the gateway",
}
_SHORT: Final = {"-tp": "--tensor-parallel-size", "-dp": "--data-parallel-size", "-q": "--quantization"}


def extra_args_are_free(path: str, args: Sequence[str]) -> list[Problem]:
    """No extra argument sets what the settings already say; `--a_b`, `--a-b`, `--a=b` and short forms count alike."""
    problems = []
    for index, argument in enumerate(args):
        name = argument.partition("=")[0]
        name = _SHORT.get(name, name.replace("_", "-"))
        if name.startswith("--") and (owner := _owner(name)):
            problems.append(
                Problem(f"{path}[{index}]", argument, f"follows from {owner}", "remove it and set that instead")
            )
    return problems


def _owner(name: str) -> str | None:
    """argparse takes an unambiguous beginning of a flag for the flag, so `--served` counts as well."""
    if name in DERIVED:
        return DERIVED[name]
    if len(name) < 5:
        return None
    return next((owner for flag, owner in DERIVED.items() if flag.startswith(name)), None)
