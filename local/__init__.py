"""The local cluster and its tool chain."""
