"""Who may read whose KV cache: one digest over everything that changes what a block of KV means."""

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class KvIdentity:
    """Mooncake's keys hold no digest of the weights: two models with one tokenizer would read each other's KV."""

    model: str
    revision: str
    tokenizer: str
    dtype: str
    quantization: str
    engine_version: str
    block_size: int
    environment: str

    def digest(self) -> str:
        """24 hex digits (96 bits), used as `cache_prefix` by all sharers of a cache."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:24]


def mount_path(model_slug: str, revision: str, identity: str = "") -> str:
    """Where a model's weights appear in a pod: another revision is another path.

    vllm-ascend's store puts the path's last part into its keys, and no data type or block size: there the identity is part of the path.
    """
    return f"/models/{model_slug}-{revision[:12]}" + (f"-{identity[:12]}" if identity else "")
