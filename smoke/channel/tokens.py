"""A model that is a hash: equal prompts give equal tokens, and a prefix seen before costs nothing."""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any, Final

BLOCK: Final = 16


def prompt_of(body: dict[str, Any]) -> list[str]:
    """The words of all messages, each counted as a token."""
    return [word for message in body.get("messages", ()) for word in str(message.get("content", "")).split()]


def token(model: str, prompt: list[str], position: int) -> str:
    """The token at a position of the answer."""
    return f"{_digest(model, ' '.join(prompt), position)[:4]} "


def logprobs(model: str, prompt: list[str], position: int) -> dict[str, Any]:
    """A position's token with its best rival, 1.0 apart."""
    taken = token(model, prompt, position)
    best = {"token": taken, "logprob": -0.5}
    return best | {"top_logprobs": [best, {"token": f"not {taken}", "logprob": -1.5}]}


@dataclass(slots=True)
class PrefixCache:
    """Blocks of prompts seen so far, chained as engines chain them: a block is known only with all before it."""

    blocks: set[str] = field(default_factory=set)

    def known(self, model: str, prompt: list[str], salt: str = "") -> int:
        """How many leading tokens are known."""
        count = 0
        for digest in self._chain(model, prompt, salt):
            if digest not in self.blocks:
                break
            count += BLOCK
        return count

    def add(self, model: str, prompt: list[str], salt: str = "") -> None:
        """Remember a prompt's full blocks."""
        self.blocks.update(self._chain(model, prompt, salt))

    @staticmethod
    def _chain(model: str, prompt: list[str], salt: str) -> list[str]:
        digests, previous = [], f"{model}/{salt}"
        for start in range(0, math.floor(len(prompt) / BLOCK) * BLOCK, BLOCK):
            previous = _digest(previous, " ".join(prompt[start : start + BLOCK]))
            digests.append(previous)
        return digests


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()
