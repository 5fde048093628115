"""Margin of positions: leverage, cross or isolated margin, and liquidation prices.

An isolated position has its own margin: money that is set aside from the account's cash on the
dex. Opening adds the notional over the leverage to it. Closing takes out the share that is
closed, and funding is paid from it. The equity of the position is this margin plus its unrealised
PnL. It is the `marginUsed` of its record, and the cross margin of the account does not contain
it. All other positions of an account on a dex share the rest of the cash. The maintenance margin
follows from the tiers of each perp: `toolkit.rules.margin`.
"""

from fractions import Fraction
from math import floor

from toolkit.rules.margin import exact_liquidation_price
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.markets import PERPS, Perp
from toolkit.simulation.quantities import rounded_share

MARGIN_CHECK_MS = 90_000
"""Time of the margin check after each full hour."""

_LARGEST_RATIO = 1_000
"""A liquidation price above so many times the mark price counts as none."""


def is_isolated(account: Account, coin: int) -> bool:
    """Return whether an account's position in a perp has its own margin."""
    return account.uses_isolated or PERPS[coin].only_isolated


def account_leverage(account: Account, coin: int) -> int:
    """Return the leverage that an account has set for a perp.

    Gamblers set the maximum of the perp. The others set 3 to 10, at most that of the highest tier.
    """
    # ASSUMED: Initial margin does not depend on the margin tier.
    perp = PERPS[coin]
    if account.strategy == "gambler":
        return perp.max_leverage
    return min(perp.tiers[-1][1], 3 + account.number % 8)


def initial_margin(account: Account, coin: int, notional: int) -> int:
    """Return the margin that opening requires: notional over leverage, to the micro-dollar."""
    return rounded_share(notional, 1, account_leverage(account, coin))


def opened_size(size: int, change: int) -> int:
    """Return the size by which a change opens or increases a position.

    >>> opened_size(0, -3), opened_size(2, 1), opened_size(5, -3), opened_size(5, -8)
    (3, 1, 0, 3)
    """
    return abs(change) if size * change >= 0 else max(0, abs(change) - abs(size))


def liquidation_px(mark: int, size: int, equity: int, perp: Perp) -> int | None:
    """Return the mark price at which a position is liquidated, if all other prices stay.

    The maintenance margin moves with the price, through the tiers of the perp
    (`toolkit.rules.margin.exact_liquidation_price`).

    - ``mark``, ``size``: the mark price now, and the signed size
    - ``equity``: equity of the isolated position; or equity of the account, less the maintenance
      margin of its other positions
    - ``perp``: the perp, whose tiers count

    Returns: rounded to the nearest unit of the price, halves away from the mark price; None if
    it is not above zero or too far away.

    >>> five = PERPS[-1]
    >>> liquidation_px(1000, 2, 290, five), liquidation_px(1000, -2, 310, five)
    (950, 1050)
    >>> liquidation_px(1000, 1, 1000, five) is None
    True
    """
    distance = exact_liquidation_price(mark, size, equity, perp.tiers) - mark
    units = floor(abs(distance) + Fraction(1, 2))
    px = mark + units if distance > 0 else mark - units
    return px if 0 < px < _LARGEST_RATIO * mark else None
