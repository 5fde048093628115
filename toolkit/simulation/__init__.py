"""A seeded exchange that fills every table a service can serve."""

from toolkit.simulation.truth import TokenTruth, Truth
from toolkit.simulation.world import VERSION, World, simulate, tiles

__all__ = ["VERSION", "TokenTruth", "Truth", "World", "simulate", "tiles"]
