"""Proof on the live stack: probes, report, pulse, doctor and drills; no Pulumi inside."""
