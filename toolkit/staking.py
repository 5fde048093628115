"""Staking: yields of delegating, the fees that they imply, and stability of ranks."""

from toolkit.analysis.staking import RankStability, apy, implied_fee, rank_stability
from toolkit.public_path import set_public_path

__all__ = ["RankStability", "apy", "implied_fee", "rank_stability"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
