"""Staking: yields of delegating, the fees that they imply, and stability of ranks."""

from toolkit.analysis.staking import RankStability, apy, implied_fee, rank_stability
from toolkit.public_names import publish_names

__all__ = ["RankStability", "apy", "implied_fee", "rank_stability"]

publish_names(__name__)
