"""How positions are margined: leverage, cross or isolated, and when what is left is too little.

An isolated position has a margin of its own: money that is set aside from the account's cash on
the dex. Opening puts the notional over the leverage into it, closing takes the same share of it
out as of the position, funding is paid from it. Its equity is this margin with its unrealised
PnL: the `marginUsed` of its record, which the cross margin of the account does not count. All
other positions of an account on a dex share what is left. What an account must keep follows
from the tiers of each perp: `toolkit.rules.margin`.
"""

from fractions import Fraction
from math import floor

from toolkit.rules.margin import exact_liquidation_price
from toolkit.simulation.accounts import Account
from toolkit.simulation.markets import PERPS, Perp
from toolkit.simulation.quantities import rounded_share

__all__ = [
    "MARGIN_CHECK_MS",
    "is_isolated",
    "leverage",
    "liquidation_px",
    "margin_used",
    "opened",
    "taken_out",
]

MARGIN_CHECK_MS = 90_000
"""Time after each full hour at which everybody's margin is looked at."""

_BEYOND = 1_000


def is_isolated(account: Account, coin: int) -> bool:
    """Say whether an account's position in a perp has a margin of its own."""
    return account.isolated or PERPS[coin].only_isolated


def leverage(account: Account, coin: int) -> int:
    """Return the leverage that an account has set for a perp: 3 to 10, as far as it goes.

    Gamblers set the largest; the others none that the largest positions may not have.
    """
    # ASSUMED: what opening asks for does not rise with the margin tiers.
    perp = PERPS[coin]
    lowest = perp.tiers[-1][1]
    return perp.max_leverage if account.manner == "gambler" else min(lowest, 3 + account.number % 8)


def margin_used(notional: int, leverage: int) -> int:
    """Give the margin that opening asks for: notional over leverage, to the micro-dollar.

    Examples
    --------
    >>> margin_used(1_000_000, 3)
    333333
    """
    return rounded_share(notional, 1, leverage)


def opened(size: int, change: int) -> int:
    """Give how much of a change opens, unsigned: all, nothing, or what is left of a flip.

    Examples
    --------
    >>> opened(0, -3), opened(2, 1), opened(5, -3), opened(5, -8)
    (3, 1, 0, 3)
    """
    return abs(change) if size * change >= 0 else max(0, abs(change) - abs(size))


def taken_out(margin: int, size: int, change: int) -> int:
    """Give what a change takes out of a position's margin: the share of it that it closes.

    Examples
    --------
    >>> taken_out(100, 3, -1), taken_out(100, 3, -9), taken_out(100, 3, 1)
    (33, 100, 0)
    """
    closed = abs(change) - opened(size, change)
    return rounded_share(margin, closed, abs(size)) if closed else 0


def liquidation_px(mark: int, size: int, equity: int, perp: Perp) -> int | None:
    """Return the mark price at which what a position stands on is used up; None beyond reach.

    All other prices stay. The maintenance margin moves with the price, through the tiers of the
    perp (`toolkit.rules.margin.exact_liquidation_price`).

    Parameters
    ----------
    mark, size : int
        The mark price now, and the signed size.
    equity : int
        Of the isolated position; or of the account, less the maintenance margin of its other
        positions.
    perp : Perp
        Whose tiers count.

    Returns
    -------
    int or None
        Rounded to the next unit of the price, halves away from the mark price; None where it is
        not above zero.

    Examples
    --------
    >>> five = PERPS[-1]
    >>> liquidation_px(1000, 2, 290, five), liquidation_px(1000, -2, 310, five)
    (950, 1050)
    >>> liquidation_px(1000, 1, 1000, five) is None
    True
    """
    away = exact_liquidation_price(mark, size, equity, perp.tiers) - mark
    units = floor(abs(away) + Fraction(1, 2))
    px = mark + units if away > 0 else mark - units
    return px if 0 < px < _BEYOND * mark else None
