"""What delegating earns: yields from weekly APRs, the fees they imply, how stable ranks are.

Frames as `tk.validator_apr_history` gives them, of one validator, or of many by `tk.many` (with
a column ``validator``); of any engine. The running week is partial until it closes and is left
out of every figure; so is a week given twice, but for once.
"""

from toolkit.analysis.staking_ranks import RankStability, rank_stability
from toolkit.analysis.staking_weeks import apy, implied_fee, weeks

__all__ = ["RankStability", "apy", "implied_fee", "rank_stability", "weeks"]


def __dir__() -> list[str]:
    return list(__all__)
