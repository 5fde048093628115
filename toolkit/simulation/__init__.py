"""A seeded exchange that fills every table a service can serve."""

from toolkit.simulation.world import TokenTruth, Truth, World, simulate

__all__ = ["TokenTruth", "Truth", "World", "simulate"]
