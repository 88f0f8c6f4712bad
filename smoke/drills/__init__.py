"""Drills: take something away under load, and count what was lost."""
