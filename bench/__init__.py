"""Measurements: each module one subject, run by `python -m bench`."""
