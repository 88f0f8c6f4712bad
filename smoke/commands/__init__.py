"""The commands of `python -m smoke`, one concern a file."""
