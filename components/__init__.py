"""Pulumi component resources: one file each."""
