"""Seeds, which identify simulated exchanges."""

import operator
from typing import Final, SupportsIndex

_SEEDS: Final = 2**63


def check_seed(seed: SupportsIndex) -> int:
    """Return a seed as an int.

    Raise TypeError if it is not a whole number. Raise ValueError if it is negative or has more than
    63 bits.

    >>> check_seed(7)
    7
    """
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
        raise TypeError(f"a seed must be a whole number, not {seed!r}")
    number = operator.index(seed)
    if not 0 <= number < _SEEDS:
        raise ValueError(f"a seed must be a whole number from 0 to 2**63 - 1, not {number}")
    return number
