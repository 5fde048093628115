"""The closed PnL of perp fills, by the exchange's own rule, in whole numbers.

The rule (clarifications, "How the exchange accounts"), from a flat start:

- the account holds a signed size and an exact entry notional N of its absolute value q;
- opening adds px * sz to N and closes nothing;
- closing c takes the entry price N / q, **truncated** to (6 - szDecimals) decimals, realises
  c * (px - entry) * sign, and shrinks N by the exact share c / q;
- a flip closes all and opens the rest at px.

Units
-----
Everything is a Python int. Sizes are in lots of 10**-szDecimals, prices in ticks of
10**-(6 - szDecimals), so a notional and a closed PnL are whole millionths of a USD:
``lots * ticks``. Data with finer prices or sizes scale both finer and say with `tick` how many
price units make one step of the truncated entry price.

Why N is not a `Fraction`
-------------------------
N becomes rational with the first partial close, and over a chain that never goes flat its
denominator grows by a factor at every close: 10,000 fills would need numbers of 100,000 bits.
So N is kept in units of 2**-GUARD_BITS, rounded *up*. The truncated entry price that follows is
the exact one whenever the exact N / q is a whole tick (rounding up cannot fall below it) or
has a denominator below 2**GUARD_BITS over the number of closes; for any other it differs only
if N / q lies within 10**-70 ticks below a whole tick.

>>> size, entry, total = 0, 0, 0
>>> for change, px in ((10, 100), (5, 101), (-9, 110), (-8, 90)):
...     closed, size, entry = step(size, entry, change, px)
...     total += closed
...     print(closed, size, entry_price(size, entry))
0 10 100
0 15 100
90 6 100
-60 -2 90
"""

from collections.abc import Iterable

__all__ = ["GUARD_BITS", "entry_price", "price_decimals", "replay", "step"]

GUARD_BITS = 256
"""The entry notional is kept in units of 2**-GUARD_BITS of a price unit times a size unit."""

PRICE_DECIMALS = 6
"""A perp price has at most 6 - szDecimals decimals (specification: `meta`, szDecimals)."""


def step(size: int, entry: int, change: int, px: int, tick: int = 1) -> tuple[int, int, int]:
    """Apply one fill to a position.

    Parameters
    ----------
    size : int
        Signed size before the fill, in size units; long is positive.
    entry : int
        Entry notional before the fill as this function gave it back; 0 when flat.
    change : int
        Signed size of the fill: positive for a buy (side ``B``), negative for a sell (``A``).
    px : int
        Price of the fill, in price units, positive.
    tick : int, default 1
        Price units to one step of the truncated entry price.

    Returns
    -------
    closed_pnl : int
        In price units times size units; positive is a gain; exactly 0 for an opening fill.
    size, entry : int
        The position after the fill, to pass to the next step.
    """
    after = size + change
    if size == 0 or (size > 0) == (change > 0):
        return 0, after, entry + ((abs(change) * px) << GUARD_BITS)
    held = abs(size)
    gain = px - entry_price(size, entry, tick)
    if size < 0:
        gain = -gain
    if (after > 0) != (size > 0):  # all of it closed, the rest (if any) opened at px
        return held * gain, after, (abs(after) * px) << GUARD_BITS
    # Negated on both sides, floor division rounds up.
    return abs(change) * gain, after, -(-entry * abs(after) // held)


def entry_price(size: int, entry: int, tick: int = 1) -> int:
    """Give the entry price as the exchange uses it: N / q, truncated to whole ticks.

    Parameters
    ----------
    size, entry : int
        A position as `step` gives it.
    tick : int, default 1
        Price units to one step of the truncated price.

    Returns
    -------
    int
        In price units; 0 for a flat position.
    """
    if size == 0:
        return 0
    return entry // ((abs(size) * tick) << GUARD_BITS) * tick


def replay(fills: Iterable[tuple[int, int]], tick: int = 1) -> list[int]:
    """Give the closed PnL of each fill of one account in one coin, from a flat start.

    Parameters
    ----------
    fills : iterable of (change, px)
        In the order of execution, as `step` takes them.
    tick : int, default 1
        Price units to one step of the truncated entry price.

    Returns
    -------
    list of int
        One closed PnL a fill.

    Examples
    --------
    >>> replay([(3, 100), (1, 102), (-2, 101), (-4, 99)])
    [0, 0, 2, -2]
    """
    closed = []
    size = entry = 0
    for change, px in fills:
        gain, size, entry = step(size, entry, change, px, tick)
        closed.append(gain)
    return closed


def price_decimals(sz_decimals: int) -> int:
    """Give the decimals of a perp's prices, and of its truncated entry price.

    Parameters
    ----------
    sz_decimals : int
        The asset's ``szDecimals`` of `meta`.

    Returns
    -------
    int
        6 - szDecimals, at least 0.

    Examples
    --------
    >>> price_decimals(5)
    1
    """
    return max(0, PRICE_DECIMALS - sz_decimals)
