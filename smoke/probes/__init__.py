"""The probes, one concern a file; each module gives a function from settings to its probes."""
