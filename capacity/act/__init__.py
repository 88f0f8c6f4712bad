"""Carrying out what was planned, by the leader alone."""
