"""A seeded exchange that fills every table a service can serve."""

from toolkit.simulation.world import Truth, World, simulate

__all__ = ["Truth", "World", "simulate"]
