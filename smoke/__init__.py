"""Probes, preflight, doctor, pulse and drills against a running stack."""
