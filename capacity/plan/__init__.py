"""Pure planning: what is observed in, what to do out; no I/O and no clock of its own."""
