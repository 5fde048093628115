"""Whole numbers, in the types in which users have them."""

import operator
from numbers import Integral, Real
from typing import SupportsIndex

__all__ = ["whole_number"]


def whole_number(value: object) -> int | None:
    """Return a whole number as an int; None for any other value.

    A number of numpy counts as the Python number that it equals. A float counts if it has no
    fraction. True and False do not count.

    >>> whole_number(2), whole_number(2.0), whole_number(2.5), whole_number(True)
    (2, 2, None, None)
    """
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:  # such as an array
            return None
    # True and numpy.timedelta64 are instances of Integral, too.
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        return int(float(value))
    return None
