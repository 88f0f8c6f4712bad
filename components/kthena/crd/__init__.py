"""Kthena's custom resources as pydantic models: every field that Moonstack writes, with the limits of the CRDs and webhooks.

Source: volcano-sh/kthena v0.4.0 and v1.0.0, `charts/kthena/charts/*/crds`.
"""
