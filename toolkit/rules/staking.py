"""What a stake earns (specification, "Validator weekly APR entry").

Plain arithmetic, for decimals as for arrays.
"""

from typing import Any, Final

__all__ = ["WEEKS", "apr", "apy", "implied_fee"]

WEEKS: Final = 365 / 7
"""Weeks in a year, as the APR counts them: 365 days."""


def apr(rewards: Any, staked: Any) -> Any:
    """Give the APR of rewards on the sum of the daily stakes that earned them, not compounded.

    Examples
    --------
    >>> apr(9.0, 36500.0)  # 9 on a stake of 36,500 in one day
    0.09
    """
    return rewards / staked * 365


def apy(weekly_apr: Any, compounds: float = WEEKS) -> Any:
    """Give the yield of a year of such weeks, rewards staked again at the end of each.

    Examples
    --------
    >>> round(apy(0.0365), 6)  # 0.07 % a week: 1.0007 ** (365 / 7) - 1
    0.037161
    """
    return (1 + weekly_apr / compounds) ** compounds - 1


def implied_fee(net_apr: Any, gross_apr: Any) -> Any:
    """Give the share of the rewards that the validator kept.

    Examples
    --------
    >>> implied_fee(0.09, 0.12)
    0.25
    """
    return 1 - net_apr / gross_apr
