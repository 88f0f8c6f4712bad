"""Weights on a node: fetch one pinned revision, verify every byte, keep it within a limit, and hold it while a pod serves it."""
