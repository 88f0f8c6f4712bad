"""The local cluster: a real control plane and one real node in a network namespace of their own."""

from local.cluster.lifecycle import connect, down, up

__all__ = ["connect", "down", "up"]
