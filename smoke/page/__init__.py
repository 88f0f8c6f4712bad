"""One self-contained page of a report: no script, no outside address, readable on a phone."""
