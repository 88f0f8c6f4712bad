"""Keys never reach a log, a report or an error: a filter on the root logger, and the same function for texts."""

import logging
import re
from typing import Final

from rules import key_text

MASK: Final = "[redacted]"
_BEARER: Final = re.compile(r"(?i)(bearer\s+)[^\s\"',;<]{8,}")


class Redactor(logging.Filter):
    """Replaces known key values, anything after `Bearer`, and whatever has the form of a key (rules/key_text.py)."""

    def __init__(self) -> None:
        super().__init__()
        self._values: set[str] = set()

    def learn(self, value: str) -> None:
        """Remember a key's value, so that it's masked wherever it would appear."""
        if value:
            self._values.add(value)

    def text(self, text: str) -> str:
        """The text without any key."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, MASK)
        return key_text.redact(_BEARER.sub(rf"\1{MASK}", text), MASK)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; it is always kept."""
        record.msg = self.text(record.getMessage())
        record.args = None
        if record.exc_info:
            record.exc_text = self.text(logging.Formatter().formatException(record.exc_info))
        return True


REDACTOR: Final = Redactor()
"""The process has one: every key that smoke reads is made known to it."""


def install() -> None:
    """Put the filter on every handler of the root logger; handlers, as logger filters don't see children's records."""
    for handler in logging.getLogger().handlers:
        if REDACTOR not in handler.filters:
            handler.addFilter(REDACTOR)
