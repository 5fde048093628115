"""What a simulated exchange is named by: a seed."""

import operator
from typing import Final, SupportsIndex

__all__ = ["checked_seed"]

_SEEDS: Final = 2**63


def checked_seed(seed: SupportsIndex) -> int:
    """Give a seed as Python's whole number.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is negative or has more than 63 bits.

    Examples
    --------
    >>> checked_seed(7)
    7
    """
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
        raise TypeError(f"a seed is a whole number, not {seed!r}")
    number = operator.index(seed)
    if not 0 <= number < _SEEDS:
        raise ValueError(f"a seed is a whole number from 0 to 2**63 - 1, not {number}")
    return number
