"""Staking: yields of delegating, the fees that they imply, and stability of ranks."""

from toolkit.analysis.staking_ranks import RankStability, rank_stability
from toolkit.analysis.staking_weeks import apy, implied_fee, weeks
from toolkit.public_path import set_public_path

__all__ = ["RankStability", "apy", "implied_fee", "rank_stability", "weeks"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
