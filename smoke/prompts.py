"""Prompts of a wanted length that say nothing: random words from a fixed list, no user text anywhere."""

import random
import secrets
from typing import Final

_WORDS: Final = (
    *("river", "stone", "light", "paper", "winter", "garden", "silver", "window", "harbor", "mountain"),
    *("letter", "morning", "engine", "circle", "forest", "market", "bridge", "island", "signal", "copper"),
    *("basket", "valley", "lantern", "thunder", "meadow", "anchor", "pepper", "saddle", "violin", "turtle"),
)


def nonce() -> str:
    """Eight hex digits that make a prompt unlike any other, so that no cache can know it."""
    return secrets.token_hex(4)


def words(count: int, seed: str) -> str:
    """`count` words chosen by `seed`: equal seeds give equal texts."""
    chosen = random.Random(seed)
    return " ".join(chosen.choice(_WORDS) for _ in range(count))


def prefix(count: int, seed: str) -> str:
    """A text of `count` words that differs from every other seed's already in its first token block."""
    return f"{seed} {words(count, seed)}"
