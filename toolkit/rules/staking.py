"""Rewards of a stake: APR, APY and commission (specification, "Validator weekly APR entry").

The functions work on decimals and on arrays.
"""

from typing import Any, Final

WEEKS: Final = 365 / 7
"""Weeks in a year of 365 days, as in the APR."""


def apr(rewards: Any, staked: Any) -> Any:
    """Return the APR of rewards on the sum of the daily stakes that earned them, not compounded.

    Examples
    --------
    >>> apr(9.0, 36500.0)  # 9 on a stake of 36,500 in one day
    0.09
    """
    return rewards / staked * 365


def apy(weekly_apr: Any, compounds: float = WEEKS) -> Any:
    """Return the yield of a year of such weeks if rewards are staked at the end of each.

    Examples
    --------
    >>> round(apy(0.0365), 6)  # 0.07 % a week: 1.0007 ** (365 / 7) - 1
    0.037161
    """
    return (1 + weekly_apr / compounds) ** compounds - 1


def implied_fee(net_apr: Any, gross_apr: Any) -> Any:
    """Return the share of the rewards that the validator kept.

    Examples
    --------
    >>> implied_fee(0.09, 0.12)
    0.25
    """
    return 1 - net_apr / gross_apr
