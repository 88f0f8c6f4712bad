"""A page of metrics as its program wrote it."""

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def samples(page: str) -> Iterator[Sample]:
    """Every sample under its own name: told that something is a counter, the parser would append `_total` where it is missing."""
    bare = "\n".join(line for line in page.splitlines() if not line.startswith("#"))
    for family in text_string_to_metric_families(f"{bare}\n"):
        yield from family.samples
