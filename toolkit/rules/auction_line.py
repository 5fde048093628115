"""The line that the price of a deploy auction falls along, in floats: price, end, time.

Source: specification, "Deploy auction status". What the service shows, to the last digit, is
`toolkit.rules.auctions`.
"""

from typing import Any

__all__ = ["elapsed_at", "floor_from", "price_at"]


def price_at(start: Any, floor: Any, elapsed: Any, duration: Any) -> Any:
    """Give the price when `elapsed` of `duration` is over.

    Examples
    --------
    >>> price_at(600.0, 500.0, 25, 100)
    575.0
    """
    return start - (start - floor) * elapsed / duration


def floor_from(start: Any, current: Any, elapsed: Any, duration: Any) -> Any:
    """Give the price at the end of the line that passes `current` when `elapsed` is over.

    Examples
    --------
    >>> floor_from(600.0, 575.0, 25, 100)
    500.0
    """
    return start - (start - current) * duration / elapsed


def elapsed_at(start: Any, floor: Any, price: Any, duration: Any) -> Any:
    """Give how much time is over when the line is at `price`.

    Examples
    --------
    >>> elapsed_at(600.0, 500.0, 575.0, 100)
    25.0
    """
    return (start - price) * duration / (start - floor)
