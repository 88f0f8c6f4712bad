"""Elasticity: metrics, planning, simulation, components."""
