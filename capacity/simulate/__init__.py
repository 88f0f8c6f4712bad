"""Dry run of scaling rules on a recorded or generated load."""
